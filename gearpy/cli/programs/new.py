"""``gear new``: a project with a program that runs, and its test."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from gearpy.cli.terminal.options import Given, argument, takes
from gearpy.cli.terminal.output import print_lines
from gearpy.errors import ConfigError

#: Where each file of the new project is, by its name among the data of this package.
_FILES: Final[Mapping[str, str]] = {
    "flow.py": "flow.py",
    "test_flow.py": "test_flow.py",
    "sales.jsonl": "data/sales.jsonl",
    "gear.toml": "gear.toml",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "Dockerfile": "Dockerfile",
    "check.yml": ".github/workflows/check.yml",
    "gitignore": ".gitignore",
}
#: Stands for the name of the project.
_NAME: Final = "PROJECT"


@takes("verbose")
def new(
    given: Given,  # noqa: ARG001 - `takes` has used it
    folder: Annotated[
        Path, argument(metavar="NAME", help="Folder to make; its name is that of the project.")
    ],
) -> None:
    """Make a project: a program with data, its test, a configuration, an image, and CI."""
    name = folder.resolve().name
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ConfigError(
            f"gear new {folder}: {name!r} names no project: use small letters, digits and -, and "
            "begin with a letter"
        )
    texts = files("gearpy.cli.programs") / "project"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"gear new {folder}: the folder is not empty; name one to be made")
        for source, place in _FILES.items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((texts / source).read_text("utf-8").replace(_NAME, name), "utf-8")
    except OSError as error:
        raise ConfigError(f"gear new {folder}: {error.strerror}: {error.filename}") from None
    print_lines(
        [f"{folder} has {', '.join(_FILES.values())}", f"next: cd {folder} && gear run flow.py"]
    )
