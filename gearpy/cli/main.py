"""All commands, by topic; the module of a command is imported when it is called."""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Annotated, Final

import typer

from gearpy import __version__
from gearpy.cli.terminal.absent import leave_out
from gearpy.cli.terminal.coercion import coerce_without_pydantic
from gearpy.cli.terminal.earlier import today
from gearpy.cli.terminal.exits import HELP, WRONG_USE
from gearpy.cli.terminal.groups import add_lazy, group
from gearpy.cli.terminal.guard import end_at_signals, ended_at_once
from gearpy.distribution import other_project

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
