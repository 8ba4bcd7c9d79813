"""All commands, by topic; the module of a command is imported when it is called."""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import typer
from typer import core

from gearpy import __version__
from gearpy.cli.terminal.absent import leave_out
from gearpy.cli.terminal.exits import HELP, WRONG_USE
from gearpy.cli.terminal.groups import add_lazy, group
from gearpy.cli.terminal.guard import end_at_signals, ended_at_once
from gearpy.distribution import is_clone, other_project

#: Commands and groups of commands, in the order of ``gear --help``: where each is, and its help.
COMMANDS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Programs": {
        "run": (
            "programs.run:run",
            "Run an application in this process until its input ends, or it has caught up with it.",
        ),
        "plan": (
            "programs.plan:plan",
            "Print how a program will run: steps, edges, rows or columns, state, guarantees.",
        ),
        "sql": (
            "programs.sql:sql",
            "Answer a query in SQL over files, or run a whole file of SQL.",
        ),
        "main": (
            "programs.main:main",
            "Run a program of any kind that finds the cluster and its configuration.",
        ),
        "new": (
            "programs.new:new",
            "Make a project: a program with data, its test, a configuration, an image, and CI.",
        ),
        "doctor": (
            "programs.doctor:doctor",
            "Look at Python, extras, Java, folders, ports and the cluster; say what to do.",
        ),
        "verify": (
            "programs.verify:verify",
            "Run a program and the same as a Spark query, on the same records; print what differs.",
        ),
        "chaos": (
            "programs.chaos:chaos",
            "Run a program with crashes, in virtual time, and compare with a run without.",
        ),
    },
    "Applications on a cluster": {
        "app": (
            "apps.applications:commands",
            "Submit, list, describe and stop applications on a cluster.",
        ),
        "info": (
            "apps.applications:info",
            "List the applications and workers of a cluster, or describe one application or run.",
        ),
        "top": (
            "apps.top:top",
            "Show a cluster, or one application, live.",
        ),
        "report": (
            "apps.report:report",
            "Write all that is known of an application into one HTML file, to keep or to send on.",
        ),
        "why": (
            "apps.why:why",
            "Say what is wrong with an application, what holds its clock back, and what to do.",
        ),
        "shell": (
            "apps.shell:shell",
            "A Python prompt with a connected client, to look at a cluster and to change it.",
        ),
        "kill": ("apps.applications:kill", "Stop an application; it becomes 'terminated'."),
        "debug": (
            "apps.debug:debug",
            "Run one task again, here: with its state at an epoch, and its input after that.",
        ),
        "quarantine": (
            "stored.quarantine:commands",
            "Records that an operator raised on, put aside (application.on-error = quarantine).",
        ),
    },
    "Clusters": {
        "local": (
            "daemons.commands:local",
            "Run a whole cluster in this process, until Ctrl-C or SIGTERM.",
        ),
        "master": (
            "daemons.commands:masters",
            "Start a master, or list or change those of a cluster.",
        ),
        "worker": (
            "daemons.commands:workers",
            "Start a worker, list those of a cluster, or end one.",
        ),
        "spark": (
            "daemons.spark:commands",
            "Run a cluster inside a Spark application, look at it, end it.",
        ),
        "services": (
            "daemons.services:services",
            "Serve the REST API and the page of a cluster, until Ctrl-C or SIGTERM.",
        ),
        "token": (
            "daemons.services:tokens",
            "Tokens for the services: who may read, submit, or do all.",
        ),
        "certs": (
            "daemons.certs:commands",
            "Certificates of a cluster's own authority, for transport.tls = on.",
        ),
        "config": ("daemons.config:commands", "Show the configuration, or check it."),
        "metrics": (
            "daemons.metrics:commands",
            "List what is measured; rules for Prometheus, a dashboard for Grafana.",
        ),
    },
    "What is stored": {
        "state": ("stored.state:commands", "The state of the steps of an application, as tables."),
        "savepoint": (
            "stored.savepoint:commands",
            "Savepoints: named epochs, kept until they are dropped.",
        ),
        "checkpoint": (
            "stored.checkpoint:commands",
            "What is stored of applications; no cluster is needed.",
        ),
        "window-log": (
            "stored.window_log:commands",
            "Window logs: finished windows, stored for readers such as Spark.",
        ),
        "coordinator-log": (
            "stored.coordinator_log:commands",
            "What app masters store for each other; 'gear coordinator-log ID' shows it.",
        ),
    },
}
#: Short and earlier names, which the help leaves out.
_ALIASES: Final = {"log": "coordinator-log", "windows": "window-log"}
#: So many new objects start a garbage collection: what a command makes, it mostly keeps.
_GC_THRESHOLD: Final = 10_000
#: Runs no program of a user, and makes Arrow tables: for the first one Arrow would import pandas
#: and dateutil where they are installed; pandas takes as long as reading half a million keys.
_STATE: Final = "state"


app = group("gearpy: an actor-based streaming runtime.", epilog=HELP, add_completion=True)
for _theme, _commands in COMMANDS.items():
    for _name, (_place, _about) in _commands.items():
        # All words behind the program of `main` are its own, options as well.
        _own = {"allow_interspersed_args": False} if _name == "main" else {}
        add_lazy(app, _name, _place, help=_about, rich_help_panel=_theme, context_settings=_own)
        for _alias in (alias for alias, meant in _ALIASES.items() if meant == _name):
            add_lazy(app, _alias, _place, hidden=True)


def main() -> None:
    gc.set_threshold(_GC_THRESHOLD)
    end_at_signals()
    coerce_without_pydantic()
    if warning := other_project():
        print(f"warning: {warning}", file=sys.stderr)
    if told := today(sys.argv[1:]):
        print(f"error: {told}", file=sys.stderr)
        sys.exit(WRONG_USE)
    with _for_state() if sys.argv[1:2] == [_STATE] else nullcontext():
        app(prog_name="gear")


@contextmanager
def _for_state() -> Iterator[None]:
    leave_out("pandas", "dateutil")
    with ended_at_once():
        yield


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if not wanted:
        return
    typer.echo(f"gearpy {__version__}")
    raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


#: What is written today, and an example of a whole command.
_TODAY: Final[Mapping[str, tuple[str, str]]] = {
    "-appid": ("the number alone", "kill 3"),
    "-command": ("a command", "spark start"),
    "-conf": ("--conf FILE", "info --conf gear.toml"),
    "-executors": ("--executors N", "app submit FILE.py --executors 2"),
    "-ip": ("--host HOST", "master --host 10.0.0.1 --port 3000"),
    "-jar": ("the program alone", "app submit FILE.py[:ATTR] -- ARGS"),
    "-master": ("--master HOST:PORT", "services --master 10.0.0.1:3000"),
    "-namePrefix": ("--name-prefix PREFIX", "app submit FILE.py --name-prefix test_"),
    "-port": ("--port N", "master --host 10.0.0.1 --port 3000"),
    "-sameprocess": ("--executors thread", "local --executors thread"),
    "-supervisor": ("nothing: there is no supervisor", "services"),
    "-verbose": ("--verbose", "app submit FILE.py --verbose"),
    "-workernum": ("--workers N", "local --workers 4"),
}
#: Behind its program all words are the program's.
_MAIN: Final = "main"


def today(words: Sequence[str]) -> str:
    """Return the text that names today's option for an earlier one; empty if there is none."""
    for place, word in enumerate(words):
        if word == "--" or (words[0] == _MAIN and place and not word.startswith("-")):
            break
        if (found := _TODAY.get(word.partition("=")[0])) is not None:
            written, example = found
            gear = "bin/gear" if is_clone() else "gear"
            return f"{word} is Gearpump's: write {written} here, as in {gear} {example}"
    return ""


#: Returns what typer makes the values of a parameter with.
_ByTyper: TypeAlias = Callable[[Any], Any]
_MISSING: Final = object()  #: Stands for a value that typer makes.


def coerce_without_pydantic() -> None:
    """Have typer ask pydantic only for values that are not simple; older ones never do."""
    parameter: Any = getattr(core, "_TyperParameter", None)
    by_typer: _ByTyper | None = getattr(parameter, "get_runtime_param", None)
    if by_typer is not None:
        parameter.get_runtime_param = lambda given: _Simple(given, by_typer)


class _Simple:
    """Makes the value of one parameter."""

    def __init__(self, parameter: Any, by_typer: _ByTyper) -> None:
        self._parameter = parameter
        self._by_typer = by_typer

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        found = self._made(value)
        if found is _MISSING:
            return self._by_typer(self._parameter).coerce(value, param=param, ctx=ctx)
        return found

    def _made(self, value: Any) -> Any:
        is_many = self._parameter.multiple or self._parameter.nargs == -1
        if value is None:
            return () if is_many else None
        kind = self._parameter.type_descriptor.annotation
        info = self._parameter.type_descriptor.parameter_info
        if info.parser is not None:
            return _MISSING
        if is_many:
            are_texts = kind == list[str] and all(type(each) is str for each in value)
            return list(value) if are_texts else _MISSING
        if type(value) is kind or (get_origin(kind) is Literal and value in get_args(kind)):
            return value
        if kind is int and value.isascii() and value.isdigit():
            number = int(value)
            is_within = (info.min or 0) <= number and (info.max is None or number <= info.max)
            return number if is_within else _MISSING
        if isinstance(kind, type) and issubclass(kind, StrEnum) and value in set(kind):
            return kind(value)
        return _MISSING
