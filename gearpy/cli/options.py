"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AppArgs",
    "AsJson",
    "Conf",
    "ConfFiles",
    "Executors",
    "Master",
    "Set",
    "Target",
    "Verbose",
]

Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:ATTR]",
        help="Python file, and the application (or function that makes one) in it; without "
        "ATTR it is 'app', 'main', or the only one.",
        show_default=False,
    ),
]
AppArgs: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARGS", help="For main(args) of the file; write -- before them.", show_default=False
    ),
]
Executors: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--executors",
        min=1,
        metavar="N",
        help="Executors that share the tasks; default: application.executor-num.",
        show_default=False,
    ),
]
Conf: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--conf",
        metavar="FILE",
        help="Configuration file (TOML); the last of several wins.",
        show_default=False,
    ),
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One key of the configuration, such as worker.slots=8; see 'gear config show'.",
        show_default=False,
    ),
]
ConfFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Configuration files (TOML).", show_default=False),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="HOST:PORT",
        help="Where the cluster is; default: cluster.masters.",
        show_default=False,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="For programs: JSON, one line.")]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Tracebacks of user code, and gearpy's log.")
]
