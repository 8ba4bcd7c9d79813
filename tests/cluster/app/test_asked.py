"""Changes that are asked for while their programs are loaded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event
from typing import Final

import pytest
from msgspec.structs import replace

from gearpy.cluster.app.changes.asked import AskedChanges, ChangeAnswer, Loaded
from gearpy.cluster.programs.outline import LoadedProgram, ProgramOutline
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import AppId
from gearpy.messages.client import (
    Artifact,
    ProgramLoading,
    Refused,
    UpdateApplication,
    UpdatePlanned,
)
from tests.eventually import DEADLINE_S

PROGRAM: Final = Artifact(kind="file", location="x.py")
LOADED: Final = LoadedProgram(artifact=PROGRAM, outline=ProgramOutline(name="x", runs="streams"))
ASKED: Final = UpdateApplication(app_id=AppId(1), artifact=PROGRAM, key="1")
PLANNED: Final = UpdatePlanned(app_id=AppId(1), version=1, moves=())


class Bench:
    """Loads when it is told to, in threads; turns happen when they are waited for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.may_load = Event()
        self.turns: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.decided: list[Loaded] = []
        self.now_ms = 0
        self.changes = AskedChanges(AppId(1), self._load, lambda: self.now_ms, self.turns.put)

    def _load(self, artifact: Artifact, compared: Artifact | None) -> LoadedProgram:
        assert self.may_load.wait(DEADLINE_S)
        if self.error is not None:
            raise self.error
        return replace(LOADED, compared=compared)

    def _decide(self, loaded: Loaded) -> ChangeAnswer:
        self.decided.append(loaded)
        return Refused(reason=str(loaded)) if isinstance(loaded, GearpyError) else PLANNED

    def ask(self, message: UpdateApplication) -> ChangeAnswer | ProgramLoading:
        known = self.changes.answer_to(message)
        return known or self.changes.load(message, PROGRAM, None, self._decide)

    def take_turns(self, number: int = 1) -> None:
        for _ in range(number):
            self.turns.get(timeout=DEADLINE_S)()


@contextmanager
def a_bench(error: Exception | None = None) -> Iterator[Bench]:
    bench = Bench(error)
    try:
        yield bench
    finally:
        bench.may_load.set()


def test_who_asks_again_gets_what_became_of_it() -> None:
    """Once it is decided, and as often as it is asked: an answer may be lost on its way."""
    with a_bench() as bench:
        assert bench.ask(ASKED) == ProgramLoading(app_id=AppId(1), lasts_ms=0)
        bench.now_ms = 700
        assert bench.ask(ASKED) == ProgramLoading(app_id=AppId(1), lasts_ms=700)
        bench.may_load.set()
        bench.take_turns()

        assert [bench.ask(ASKED), bench.ask(ASKED)] == [PLANNED, PLANNED]
        assert bench.decided == [LOADED]


def test_another_key_is_another_change() -> None:
    with a_bench() as bench:
        bench.may_load.set()
        bench.ask(ASKED)
        bench.ask(replace(ASKED, key="2"))
        bench.take_turns(2)

        assert bench.decided == [LOADED, LOADED]


def test_a_client_without_a_key_is_told_to_ask_once_more() -> None:
    """It is of the version before; the next such change is another one."""
    asked = replace(ASKED, key="")
    with a_bench() as bench:
        first = bench.ask(asked)
        assert isinstance(first, Refused)
        assert "ask for the same once more" in first.reason
        bench.may_load.set()
        bench.take_turns()

        assert bench.ask(asked) == PLANNED
        assert isinstance(bench.ask(asked), Refused)


def test_more_programs_at_once_than_can_be_loaded_are_refused() -> None:
    with a_bench() as bench:
        for number in range(4):
            assert isinstance(bench.ask(replace(ASKED, key=f"k{number}")), ProgramLoading)

        refused = bench.ask(ASKED)

        assert isinstance(refused, Refused)
        assert "4 programs are being loaded" in refused.reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConfigError("no application in it"), "no application in it"),
        (OSError(28, "no space"), "the program cannot be loaded: [Errno 28] no space"),
        (
            OperatorError(
                operator="import x.py", cause="gone", source="x.py:3", source_line="go()"
            ),
            "operator 'import x.py': gone, at x.py:3: go()",
        ),
    ],
)
def test_why_a_program_is_not_loaded_is_the_refusal(error: Exception, reason: str) -> None:
    with a_bench(error) as bench:
        bench.may_load.set()
        bench.ask(ASKED)
        bench.take_turns()

        assert bench.ask(ASKED) == Refused(reason=reason)
