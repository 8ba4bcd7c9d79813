"""The turns of an executor's tasks at this moment, for turns that do not end."""

import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import dropwhile
from threading import get_ident
from types import FrameType, FunctionType
from typing import Final, NamedTuple

from gearpy.core.app.turn_limit import TurnLimit, long_of
from gearpy.ids import TaskId
from gearpy.messages.app import LongTurn
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.failure import source_in
from gearpy.task.chain.fused import FusedStage
from gearpy.task.chain.stage import Stage

_STACK_CHARS_MAX = 8000
#: Begins the name of the frame in which a task works, before that of its operator. What looks at a
#: process from outside sees names of frames, and nothing of objects.
TURN_OF: Final = "turn of "


def named_turn(function: Callable[..., None], operator: str) -> Callable[..., None]:
    assert isinstance(function, FunctionType), "one that is written in Python"
    code = function.__code__.replace(co_name=f"{TURN_OF}{operator}")
    return FunctionType(code, function.__globals__)


class Work(NamedTuple):
    """Tells the work of a turn at one moment.

    Attributes:
        step: name of the step of a chain that works; empty where that is not known.
        source: ``file:line`` of the innermost line of user code; empty if there is none.
    """

    step: str
    source: str
    source_line: str
    stack: str


class TurnBoard:
    """The turns that are under way: since when, and on which thread.

    Runs on: any thread; `begin` and `end` are on the way of each turn, and so take no lock: each
    is one operation of a dict.
    """

    def __init__(self) -> None:
        self._turns: dict[TaskId, tuple[int, int]] = {}  # When it began, and its thread.

    def begin(self, task: TaskId, now_ms: int) -> None:
        """Note that a turn of a task begins on this thread; in monotonic ms."""
        self._turns[task] = (now_ms, get_ident())

    def end(self, task: TaskId) -> None:
        self._turns.pop(task, None)

    def began_ms(self) -> dict[TaskId, int]:
        return {task: began_ms for task, (began_ms, _) in self._turns.copy().items()}

    def work_of(self, task: TaskId) -> Work | None:
        turn = self._turns.get(task)
        frame = None if turn is None else sys._current_frames().get(turn[1])  # noqa: SLF001
        if frame is None:
            return None
        frames = list(traceback.walk_stack(frame))[::-1]  # The outermost first.
        # The thread machinery comes before the first frame of gearpy.
        source, line = source_in(dropwhile(lambda at: not _is_of_gearpy(at[0]), frames))
        stack = "".join(traceback.StackSummary.extract(iter(frames)).format())
        return Work(_step_of(frames[::-1]), source, line, stack[-_STACK_CHARS_MAX:])


class TurnWatch:
    """Reports long turns and their work, and the turn that has lasted too long.

    Args:
        limit_ms: how long one may last; 0: for ever.
    """

    def __init__(self, board: TurnBoard, limit_ms: int, name_of: Callable[[TaskId], str]) -> None:
        self._board = board
        self._limit_ms = limit_ms
        self._limit = TurnLimit(limit_ms)
        self._name_of = name_of

    def long_turns(self, now_ms: int) -> tuple[LongTurn, ...]:
        return tuple(
            LongTurn(
                task_id=task,
                lasts_ms=lasts_ms,
                step=work.step or self._name_of(task),
                source=work.source,
                source_line=work.source_line,
            )
            for task, lasts_ms in long_of(self._board.began_ms(), now_ms).items()
            if (work := self._board.work_of(task)) is not None
        )

    def overdue(self, now_ms: int) -> ErrorCard | None:
        task = self._limit.overdue(self._board.began_ms(), now_ms)
        if task is None or (work := self._board.work_of(task)) is None:
            return None
        return ErrorCard(
            cause=f"a call of user code has not ended within {self._limit_ms // 1000} s, the limit "
            "that executor.turn-timeout-seconds sets: see in the stack what it waits for, and let "
            "it give up by itself, or raise the limit",
            operator=work.step or self._name_of(task),
            task=str(task),
            source=work.source,
            source_line=work.source_line,
            traceback=work.stack,
        )


def _is_of_gearpy(frame: FrameType) -> bool:
    package: str = frame.f_globals.get("__package__") or ""
    return package.partition(".")[0] == "gearpy"


def _step_of(frames: Sequence[tuple[FrameType, int]]) -> str:
    for frame, _ in frames:
        owner = frame.f_locals.get("self")
        if isinstance(owner, FusedStage):
            return owner.operator_at(frames)
        # Objects of others are left alone: a half-made one may answer without end.
        if isinstance(owner, Stage) and isinstance(name := getattr(owner, "name", None), str):
            return name
    return ""
