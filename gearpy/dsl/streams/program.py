"""The steps of an application, as its streams add them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from gearpy.dsl.operators.names import check_on_error, check_parallelism
from gearpy.dsl.operators.operator import Operator, stream_text
from gearpy.errors import ConfigError
from gearpy.messages.summaries import ScaleBounds
from gearpy.messages.type_variables import T

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream


class Program:
    """Gathers the steps that streams add, and makes the streams behind them.

    Invariant: a step comes after the steps that it reads.

    Args:
        name: of the application.
        make_stream: the class of streams; given, as streams of all kinds make others.
        parallelism: of steps that do not say otherwise.
    """

    def __init__(
        self,
        name: str,
        make_stream: Callable[[Program, Operator], Stream[Any]],
        *,
        parallelism: int = 1,
    ) -> None:
        self.name = name
        self.parallelism = parallelism
        self.steps: list[Operator] = []
        self.bounds: dict[Operator, ScaleBounds] = {}  #: What autoscale may choose for steps.
        self._make_stream = make_stream
        self._begun: dict[int, str] = {}

    def add(self, step: Operator) -> Stream[Any]:
        """Add a step, return the stream behind it.

        Raises:
            ConfigError: its parallelism is no number; there is no such policy for errors.
        """
        check_parallelism(step.name, step.parallelism)
        check_on_error(step.kind, step.on_error)
        self.steps.append(step)
        return self.stream(step)

    def stream(self, step: Operator) -> Stream[Any]:
        """Return the stream behind a step."""
        return self._make_stream(self, step)

    def begin(self, mistake: str) -> int:
        """Note that something is not a step yet; return a number for `end`.

        Args:
            mistake: the text of the error if it never becomes one.
        """
        number = len(self._begun)
        self._begun[number] = mistake
        return number

    def end(self, number: int) -> None:
        """Learn that it has become one, or begun another thing that will."""
        self._begun[number] = ""

    @property
    def mistakes(self) -> list[str]:
        """A mistake for each thing that was begun and became no step."""
        return [mistake for mistake in self._begun.values() if mistake]

    def check_own(self, kind: str, other: Program) -> None:
        """Refuse a stream of another application.

        Raises:
            ConfigError: it is of another.
        """
        if other is not self:
            raise ConfigError(
                f"{kind} takes streams of one application, but one is of {self.name!r} "
                f"and one of {other.name!r}: read both with the same StreamApp"
            )


class ProgramStream(Generic[T]):
    """The stream behind a step; kinds of steps that can follow derive from it.

    Args:
        program: gets the steps that follow.
        step: gives the records.
    """

    def __init__(self, program: Program, step: Operator) -> None:
        self._program = program
        self._step = step

    def __repr__(self) -> str:
        return stream_text(self, self._step)
