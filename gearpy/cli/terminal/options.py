"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AppArgs",
    "AppRef",
    "AsJson",
    "Checkpoints",
    "Cluster",
    "Conf",
    "ConfFiles",
    "Executors",
    "Master",
    "Override",
    "Program",
    "Set",
    "StoredAppId",
    "Target",
    "Verbose",
]

Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:ATTR]",
        help="Python file or module, and the application (or function that makes one) in it; "
        "without ATTR it is 'app', 'main', or the only one.",
        show_default=False,
    ),
]
Program: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="FILE.py[:ATTR]; or a package folder, a folder of modules, a .zip or a .whl, each "
        "with [:NAME] or [:MODULE:ATTR], where NAME is a module, an attribute, or both with a "
        "dot between. Without a name it is the module app, and in it 'app', 'main' or the only "
        "application.",
        show_default=False,
    ),
]
AppArgs: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARGS", help="For main(args) of the file; write -- before them.", show_default=False
    ),
]
AppRef: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Number of the application in 'gear app list', or its name while it lives.",
        show_default=False,
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
Override: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--config-override",
        "-c",
        metavar="KEY=VALUE",
        help="One key of the configuration, such as streaming.batch-max-records=100.",
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
        envvar="GEARPY_MASTER",
        help="Where the cluster is; default: cluster.masters.",
        show_default=False,
    ),
]
StoredAppId: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Number of the application, or its name: then it is the newest of that name. It is "
        "looked for in the checkpoint store, without a cluster.",
        show_default=False,
    ),
]
Checkpoints: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--checkpoints",
        metavar="FOLDER",
        help="Folder or URL of the checkpoint store; default: checkpoint.folder.",
        show_default=False,
    ),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="CLUSTER",
        help="Its id, if several clusters with such an application use the store; see 'gear info'.",
        show_default=False,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="For programs: JSON, one line.")]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Tracebacks of user code, and gearpy's log.")
]
