"""``gear top``: a cluster, or one application, live in the terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Final, TypeAlias

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gearpy.cli.apps.screen import ORDERS, application_screen, overview_screen
from gearpy.cli.terminal.options import Given, argument, asking
from gearpy.cluster.client.looking import ClusterWatch
from gearpy.cluster.client.runs import RunClient
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, ConnectionLost
from gearpy.views import text
from gearpy.views.model import AppView, OverviewView

_View: TypeAlias = AppView | OverviewView
#: Between the two looks of a single answer: rates are counted from one to the other.
_APART_S: Final = 1.0
_KEY_WAIT_S: Final = 0.1
_KEYS: Final = "q ends · s sorts, now by "


@asking
def top(
    given: Given,
    ref: Annotated[
        str | None,
        argument(
            metavar="ID",
            help="Number or name of an application, or name of a run; if not given the whole "
            "cluster, or the only run.",
        ),
    ] = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.2, max=3600, metavar="SECONDS", help="Look so often.")
    ] = 2.0,
) -> None:
    """Show a cluster, or one application, live."""
    with given.client(ref) as client:
        watch = ClusterWatch(client)
        look: Callable[[], _View] = watch.overview
        if ref is not None or isinstance(client, RunClient):
            look = partial(watch.application, client.find(ref))
        if given.as_json:
            sys.stdout.write(msgspec.json.encode(_twice(look)).decode() + "\n")
        elif once or not sys.stdout.isatty():
            view = _twice(look)
            console = Console(highlight=False)
            with console.capture() as capture:
                console.print(_screen(view, console.width, ORDERS[0]))
            # Cells are padded to the width of their column; at the end of a line nobody wants that.
            sys.stdout.write("\n".join(line.rstrip(" ") for line in capture.get().split("\n")))
        else:
            _Live(look, every).run()


def _twice(look: Callable[[], _View]) -> _View:
    """Look again after a moment if there would be no rates, as nobody has looked before."""
    view = look()
    if isinstance(view, AppView):
        rates = [(view.status, view.totals.records_in_rate)]
    else:
        rates = [(each.status, each.records_in_rate) for each in view.applications]
    if all(status in TERMINAL or rate is not None for status, rate in rates):
        return view
    time.sleep(_APART_S)
    return look()


def _screen(view: _View, width: int, order: str) -> RenderableType:
    if isinstance(view, OverviewView):
        return overview_screen(view, width=width)
    return application_screen(view, width=width, order=order)


class _Live:
    """Draws views over and over, and takes keys.

    A cluster that does not answer for a while leaves the last view, and the time since when.
    """

    def __init__(self, look: Callable[[], _View], every_s: float) -> None:
        self._look = look
        self._every_s = every_s
        self._order = 0
        self._view: _View | None = None
        self._trouble = ""

    def run(self) -> None:
        with _keys() as key, Live(screen=True, auto_refresh=False) as live:
            due_s = 0.0
            while True:
                if time.monotonic() >= due_s:
                    try:
                        self._view, self._trouble = self._look(), ""
                    except (AskTimeout, ConnectionLost) as error:
                        if self._view is None:
                            raise
                        self._trouble = str(error)
                    due_s = time.monotonic() + self._every_s
                    self._draw(live)
                pressed = key()
                if pressed == "q":
                    return
                if pressed == "s":
                    self._order = (self._order + 1) % len(ORDERS)
                    self._draw(live)

    def _draw(self, live: Live) -> None:
        if self._view is None:
            return
        order = ORDERS[self._order]
        parts = [_screen(self._view, live.console.width, order), Text()]
        if self._trouble:
            since = text.moment(self._view.at_ms)
            said = f"no answer since {since}: {text.printable(self._trouble)}"
            parts.append(Text(said, style="bold red"))
        parts.append(Text(f"{_KEYS}{order}", style="dim"))
        live.update(Group(*parts), refresh=True)


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Give a function that waits a moment for a key and returns it; empty if none came."""
    import select
    import termios
    import tty

    if not sys.stdin.isatty():
        yield _no_key
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def key() -> str:
        ready, _, _ = select.select([descriptor], [], [], _KEY_WAIT_S)
        return sys.stdin.read(1).lower() if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield key
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key() -> str:
    time.sleep(_KEY_WAIT_S)
    return ""
