"""The name of gearpy on package indexes, and the command that adds an extra.

The distribution is not called as the module is: the package ``gearpy`` of the public index is
another project, about mechanical gears, whose files lie in a folder of the same name.
"""

import sys
from pathlib import Path
from typing import Final

#: What to ask pip for.
DISTRIBUTION: Final = "gearpy-streaming"
#: What not to ask pip for.
OTHER: Final = "gearpy"

#: The entry point of `gear`, by which a distribution is known as ours.
_COMMAND: Final = "gearpy.cli.main:main"
_FOLDER: Final = Path(__file__).resolve().parent


def is_clone() -> bool:
    """Tell whether gearpy runs from a clone of its repository, and not as it was installed."""
    return (_FOLDER.parent / "bin" / "_bootstrap").is_file()


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    Example:
        >>> pip_install("spark").endswith("[spark]'")
        True
    """
    if not is_clone():
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    root = _FOLDER.parent
    environment = root / ".venv"
    pip = f"{environment}/bin/pip" if Path(sys.prefix) == environment else "pip"
    return f"{pip} install -e '{root}[{extra}]'"


def program(command: str) -> str:
    """Return how a command of ``gear`` is typed: in a clone, ``bin`` has a script for some.

    Example:
        >>> program("local") in ("bin/local", "gear local")
        True
    """
    return f"bin/{command}" if is_clone() else f"gear {command}"


def other_project() -> str:
    """Return a warning if the other project of our name is installed; else nothing.

    gearpy itself was called so before its first release; that is left in peace.
    """
    infos = [info for place in sys.path for info in Path(place).glob(f"{OTHER}-*.dist-info")]
    if not infos:
        return ""
    from importlib.metadata import PathDistribution  # noqa: PLC0415 - slow, and hardly ever needed

    found = PathDistribution(infos[0])
    if any(each.value == _COMMAND for each in found.entry_points):
        return ""
    again = "reinstall this clone" if is_clone() else f"pip install {DISTRIBUTION}"
    return (
        f"the package {OTHER} {found.version} is installed beside {DISTRIBUTION}: it is another "
        "project, whose files are in the same folder; remove both and begin again: "
        f"pip uninstall {OTHER} {DISTRIBUTION}, then {again}"
    )
