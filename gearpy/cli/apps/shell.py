"""``gear shell``: a Python prompt with a client that is connected to a cluster."""

import ast
import code
import signal
import sys
import traceback
from contextlib import suppress
from typing import Annotated, Any, Final, NoReturn

import typer

import gearpy as gp
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import Given, option, takes
from gearpy.cli.terminal.output import print_error
from gearpy.errors import GearpyError
from gearpy.messages import client as questions
from gearpy.messages.client import ListWorkers
from gearpy.views import text

_OURS: Final = "gearpy."
_FILE: Final = "<shell>"


@takes("conf", "set_", "master", "verbose")
def shell(
    given: Given,
    *,
    statements: Annotated[
        str | None, option("-c", metavar="CODE", help="Run this instead of asking for it.")
    ] = None,
) -> None:
    """A Python prompt with a connected client, to look at a cluster and to change it.

    client, and cluster, is what gp.connect() returns; gp is gearpy. Questions that client.ask()
    takes, such as ListWorkers(), have their names. What an expression gives is
    shown, as at Python's own prompt. Statements are also read from standard input that is no
    terminal, up to the first that fails.
    """
    with given.client() as client:
        own = {"client": client, "cluster": client, "gp": gp, "__name__": "__console__"}
        names = {**vars(questions), **own}
        shows, sys.displayhook = sys.displayhook, show
        try:
            if statements is None and sys.stdin.isatty():
                _ask(names, client, verbose=given.verbose)
            else:
                run(sys.stdin.read() if statements is None else statements, names)
        finally:
            sys.displayhook = shows


def show(value: Any) -> None:
    """Print a value as Python's prompt does; of gearpy's objects in a sequence one in each line."""
    items = value if isinstance(value, list | tuple) else ()
    if items and all(type(each).__module__.startswith(_OURS) for each in items):
        print("\n".join(map(repr, items)))
    elif value is not None:
        print(repr(value))


def run(source: str, names: dict[str, Any]) -> None:
    """Run statements one after the other, and show what expressions give."""
    script = _Script(names)
    try:
        statements = ast.parse(source, _FILE).body
    except SyntaxError:
        script.showtraceback()
    for each in statements:
        script.runcode(compile(ast.Interactive([each]), _FILE, "single"))


class _Script(code.InteractiveInterpreter):
    """Ends at the first error."""

    def showtraceback(self) -> NoReturn:
        _, error, trace = sys.exc_info()
        if isinstance(error, GearpyError | KeyboardInterrupt):
            raise error
        while trace is not None and trace.tb_frame.f_code.co_filename != _FILE:
            trace = trace.tb_next
        assert error is not None, "called where one is handled"
        traceback.print_exception(error.with_traceback(trace))
        raise typer.Exit(FAILED) from None


def _ask(names: dict[str, Any], client: Any, *, verbose: bool) -> None:
    # Ctrl-C ends a statement, as at any prompt, and not the shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.excepthook = sys.__excepthook__  # The console leaves its own frames out only then.
    with suppress(ImportError):
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    applications, workers = client.applications(), client.ask(ListWorkers()).workers
    _Console(names, verbose=verbose).interact(
        f"gearpy {gp.__version__}: {text.plural(len(workers), 'worker')} and "
        f"{text.plural(len(applications), 'application')} at {client.address}\n"
        "client asks the cluster: client.applications(), client.ask(GetPlan(app_id=ID)).text,\n"
        "run = client.running(NAME), run.metrics().tasks, run.state(STEP); gp is gearpy; Tab "
        "completes, Ctrl-D ends",
        exitmsg="",
    )


class _Console(code.InteractiveConsole):
    """Shows errors of gearpy in a line, as commands do."""

    def __init__(self, names: dict[str, Any], *, verbose: bool) -> None:
        super().__init__(names, _FILE)
        self._verbose = verbose

    def showtraceback(self) -> None:
        if isinstance(error := sys.exc_info()[1], GearpyError):
            print_error(error, verbose=self._verbose)
        else:
            super().showtraceback()
