"""The options that commands share, and `Given`, the values that a user has given for them.

A command takes a `Given` first; a decorator, such as `asking`, adds the options behind its own.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast

import typer
from msgspec import Struct

from gearpy.cli.terminal.guard import guarded
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from gearpy.cluster.client.client import ClusterClient
    from gearpy.config.schema import Config

_Command: TypeAlias = Callable[..., None]


class Given(Struct, frozen=True, kw_only=True):
    """The values that a user has given for the shared options of a command."""

    conf: Sequence[Path] | None = None
    set_: Sequence[str] | None = None
    master: str | None = None
    checkpoints: str | None = None
    cluster: str | None = None
    as_json: bool = False
    verbose: bool = False

    def config(
        self,
        *assignments: str,
        master: str | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> "Config":
        """Return the configuration; see `configure`."""
        chosen = master or self.master
        return configure(
            self.conf, [*(self.set_ or ()), *assignments], master=chosen, defaults=defaults
        )

    def client(self, ref: str | None = None) -> "AbstractContextManager[ClusterClient]":
        """Connect to the run that ``ref`` names, or the only one; or to the cluster."""
        from gearpy.cli.terminal.connect import connected, found
        from gearpy.cli.terminal.runs import is_named

        config = self.config()
        return connected(config) if is_named(self.master) else found(config, ref)

    def clients(self) -> "Sequence[AbstractContextManager[ClusterClient]]":
        """Connect to the cluster; where there is none, to all runs that go on."""
        from gearpy.cli.terminal.connect import connected
        from gearpy.cli.terminal.runs import is_named, is_there
        from gearpy.cluster.client.runs import RunClient, live_runs

        config = self.config()
        has_cluster = is_named(self.master) or any(map(is_there, config.cluster.masters))
        runs = [] if has_cluster else live_runs()
        return [RunClient(each) for each in runs] or [connected(config)]

    def answer(self, values: Any, *lines: str) -> None:
        """Print what a command has found or done: values for programs, lines for people."""
        print(*([json.dumps(values)] if self.as_json else lines), sep="\n", flush=True)


def configure(
    files: Sequence[Path] | None = None,
    assignments: Sequence[str] | None = None,
    *,
    master: str | None = None,
    defaults: Mapping[str, str] | None = None,
) -> "Config":
    """Return the configuration of the project, ``--conf``, environment, ``--set`` and ``--master``.

    ``defaults`` count where none of them says anything.
    """
    from gearpy.config.load import load, project_file

    parts = [each.partition("=") for each in assignments or ()]
    overrides = {key.strip(): value.strip() for key, equals, value in parts if equals}
    mistakes = [
        f"--set {key!r} has no value: write key=value" for key, equals, _ in parts if not equals
    ]
    if master is not None:
        overrides["cluster.masters"] = master
    try:
        config = load(
            list(files or ()),
            overrides=overrides,
            defaults=defaults or {},
            project=project_file(),
        )
    except ConfigError as error:
        raise ConfigError(*mistakes, *error.mistakes) from None
    if mistakes:
        raise ConfigError(*mistakes)
    return config


def takes(*names: str, **instead: Any) -> Callable[[_Command], _Command]:
    """Make a decorator that adds shared options to a command, and ends it as `guarded` does."""
    options = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=False if name in _FLAGS else None,
            annotation=instead.get(name, _SHARED[name]),
        )
        for name in names
    ]

    def decorated(command: _Command) -> _Command:
        @wraps(command)
        def run(**values: Any) -> None:
            given = Given(**{name: values.pop(name) for name in names})
            with guarded(as_json=given.as_json, verbose=given.verbose):
                command(given, **values)

        _, *own = signature(command).parameters.values()
        parameters = [*own, *options]
        shown: Any = run
        shown.__signature__ = signature(command).replace(parameters=parameters)
        shown.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorated


def option(*names: str, **settings: Any) -> Any:
    """An option of which no default is shown, as its help tells it, or there is none."""
    return typer.Option(*names, show_default=False, **settings)


def argument(**settings: Any) -> Any:
    return typer.Argument(show_default=False, **settings)


ProcessesOption: TypeAlias = Annotated[
    str | None,
    option(
        "--processes",
        metavar="N|auto",
        help="Processes that share the tasks, on Linux; auto: one for each core. Default: all "
        "in this process.",
    ),
]


def processes_of(given: str | None, executors: int = 1) -> int:
    """Return the number of processes.

    Raises:
        ConfigError: it is none, or executors are asked for, too.
    """
    from gearpy.cluster.embedded.launch import Processes, number_of

    shared = given or "1"
    is_number = shared.isascii() and shared.isdecimal()
    return number_of(int(shared) if is_number else cast("Processes", shared), executors)


Target: TypeAlias = Annotated[
    str,
    argument(
        metavar="FILE[:ATTR]",
        help="Python file or module, and the application (or function that makes one) in it; "
        "without ATTR it is 'app', 'main', or the only one.",
    ),
]
Program: TypeAlias = Annotated[
    str,
    argument(
        metavar="PROGRAM",
        help="FILE.py[:ATTR]; or a package folder, a folder of modules, a .zip or a .whl, each "
        "with [:NAME] or [:MODULE:ATTR], where NAME is a module, an attribute, or both with a "
        "dot between. Without a name it is the module app, and in it 'app', 'main' or the only "
        "application. MODULE[:ATTR] is a module that can be imported here.",
    ),
]
AppArgs: TypeAlias = Annotated[
    list[str] | None,
    argument(metavar="ARGS", help="For main(args) of the file; write -- before them."),
]
NextArgs: TypeAlias = Annotated[
    list[str] | None,
    argument(
        metavar="ARGS",
        help="For main(args) of the file; write -- before them. Without any it gets those of the "
        "program that runs.",
    ),
]
NoArgs: TypeAlias = Annotated[
    bool, typer.Option("--no-args", help="The program gets no arguments.")
]
AppRef: TypeAlias = Annotated[
    str,
    argument(
        metavar="ID",
        help="Number of the application in 'gear app list', or its name: running, or newest.",
    ),
]
UntilOption: TypeAlias = Annotated[
    Literal["end", "caught-up"],
    typer.Option(
        "--until",
        help="End with the input, or when what is there now was read: then open windows stay "
        "open, and the next run goes on from there.",
    ),
]
#: A table for people has so many rows without a limit.
ROWS_MAX: Final = 100
Limit: TypeAlias = Annotated[
    int | None,
    option(
        "--limit",
        min=1,
        metavar="N",
        help=f"So many rows; default: {ROWS_MAX} as a table, else all.",
    ),
]
MaybeRef: TypeAlias = Annotated[
    str | None,
    argument(
        metavar="[ID]",
        help="Number of the application in 'gear app list', or its name, or that of a run on this "
        "machine; not needed where there is only one.",
    ),
]
Executors: TypeAlias = Annotated[
    int | None,
    option(
        "--executors",
        min=1,
        metavar="N",
        help="Executors that share the tasks; default: application.executor-num.",
    ),
]
Records: TypeAlias = Annotated[
    int | None,
    option(
        "--records",
        min=1,
        metavar="N",
        help="Take so many records of each source; one without an end needs a limit.",
    ),
]
MetricsPlace: TypeAlias = Annotated[
    str | None,
    option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Show what is measured to Prometheus, at /metrics; by default to this machine alone.",
    ),
]
_Conf: TypeAlias = Annotated[
    list[Path] | None,
    option("--conf", metavar="FILE", help="Configuration file (TOML); the last of several wins."),
]
_Set: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="KEY=VALUE",
        help="One key of the configuration, such as worker.slots=8; see 'gear config show'.",
    ),
]
Override: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--set",
        "--config-override",
        "-c",
        metavar="KEY=VALUE",
        help="One key of the configuration, such as streaming.batch-max-records=100.",
    ),
]
ConfFiles: TypeAlias = Annotated[
    list[Path] | None, argument(metavar="FILE", help="Configuration files (TOML).")
]
_Master: TypeAlias = Annotated[
    str | None,
    option(
        "--master",
        metavar="HOST:PORT",
        envvar="GEARPY_MASTER",
        help="Where the cluster is; default: cluster.masters.",
    ),
]
StoredAppId: TypeAlias = Annotated[
    str,
    argument(
        metavar="ID",
        help="Number of the application, or its name: then it is the newest of that name. It is "
        "looked for in the checkpoint store, without a cluster.",
    ),
]
_Checkpoints: TypeAlias = Annotated[
    str | None,
    option(
        "--checkpoints",
        metavar="FOLDER",
        help="Folder or URL of the checkpoint store; default: checkpoint.folder.",
    ),
]
_Cluster: TypeAlias = Annotated[
    str | None,
    option(
        "--cluster",
        metavar="CLUSTER",
        help="Its id, if several clusters with such an application use the store; see 'gear info'.",
    ),
]
_AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="For programs: JSON, one line.")]
_Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="Tracebacks of user code, and gearpy's log.")
]

_FLAGS: Final = ("as_json", "verbose")
_SHARED: Final[Mapping[str, Any]] = {
    "conf": _Conf,
    "set_": _Set,
    "master": _Master,
    "checkpoints": _Checkpoints,
    "cluster": _Cluster,
    "as_json": _AsJson,
    "verbose": _Verbose,
}

#: Of commands that only need a configuration.
configured = takes("conf", "set_", "as_json", "verbose")
#: Of commands that ask a cluster.
asking = takes("conf", "set_", "master", "as_json", "verbose")
#: Of commands that look at what is stored of an application, and ask a cluster only if it runs.
storing = takes("checkpoints", "cluster", "conf", "set_", "master", "as_json", "verbose")


def next_args(args: list[str] | None, *, no_args: bool) -> list[str] | None:
    """Return the arguments that a next version is given; None: those of the program that runs."""
    if args and no_args:
        raise ConfigError(f"--no-args leaves no place for {' '.join(args)}: give one or the other")
    return [] if no_args else args or None
