"""Previews at the records of a stream: the program up to it runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from gearpy.distribution import require
from gearpy.dsl.lower.lower import lower
from gearpy.dsl.operators.names import check_count
from gearpy.dsl.operators.operator import Operator, ReadOperator, sources_of
from gearpy.dsl.operators.routes import SideOperator, WriteOperator
from gearpy.dsl.streams.program import ProgramStream
from gearpy.errors import ConfigError, NoSuchStep, ends_at_the_caller
from gearpy.messages.type_variables import T
from gearpy.task.api.application import StreamApplication
from gearpy.task.stages.plan import physical_plan

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]

    from gearpy.connectors.gather import GatherSink

_SHOWN: Final = 20
_LIVE_S: Final = 10.0


class Records(list[T]):
    """Records of a stream: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from gearpy.views.notebook import records_html  # noqa: PLC0415 - only in notebooks

        return records_html(self)

    if not TYPE_CHECKING:  # A checker would take any name for one that is there.

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise NoSuchStep(
                f"head(...) and tail(...) run the program and give a list, which has no {name!r}: "
                "write take(n) for a step, or put the step before"
            )


class Previews(ProgramStream[T]):
    """Previews of a stream. Each runs the sources and steps before it once more, and no sink.

    Steps that do something besides, such as `log` or `inspect`, do so then, too. The errors are
    those of `gearpy.run`.
    """

    @ends_at_the_caller
    def head(self, n: int = _SHOWN, *, timeout_s: float | None = None) -> Records[T]:
        """Return the first records, as soon as they are there.

        Args:
            n: how many.
            timeout_s: how many seconds to wait for them; without it 10 where a source has no end.

        Raises:
            ConfigError: the program up to here cannot run, or ``n`` is no number from 1.

        Example:
            >>> import gearpy as gp
            >>> gp.StreamApp("look").read(gp.collection("abcd")).map(str.upper).head(2)
            ['A', 'B']
        """
        check_count("head", "n", n, example="20", least=1)
        return Records(self._gathered("head", first=n, timeout_s=self._patience(timeout_s)).records)

    @ends_at_the_caller
    def tail(self, n: int = _SHOWN, *, timeout_s: float | None = None) -> Records[T]:
        """Return the last records.

        Sources are read to their end for that. Where one has no end, it returns when ``n`` records
        have come.

        Args:
            n: how many.
            timeout_s: how many seconds to read; without it 10 where a source has no end.

        Raises:
            ConfigError: the program up to here cannot run, or ``n`` is no number from 1.

        Example:
            >>> import gearpy as gp
            >>> gp.StreamApp("look").read(gp.collection("abcd")).tail(2)
            ['c', 'd']
        """
        check_count("tail", "n", n, example="20", least=1)
        if self._endless:
            found = self._gathered("tail", first=n, timeout_s=self._patience(timeout_s))
        else:
            found = self._gathered("tail", last=n, timeout_s=timeout_s)
        return Records(found.records)

    @ends_at_the_caller
    def to_list(self, n: int | None = None, *, timeout_s: float | None = None) -> list[T]:
        """Return the records.

        Args:
            n: how many of the first ones; all if not given.
            timeout_s: how many seconds to read; then what has come is returned.

        Raises:
            ConfigError: the program up to here cannot run; or it has no end, and neither ``n`` nor
                ``timeout_s`` is given.

        Example:
            >>> import gearpy as gp
            >>> gp.StreamApp("look").read(gp.collection([1, 2, 3])).map(lambda n: n * n).to_list()
            [1, 4, 9]
        """
        return self._some("to_list", n, timeout_s).records

    @ends_at_the_caller
    def to_arrow(self, n: int | None = None, *, timeout_s: float | None = None) -> pa.Table:
        """Return the records as a `pyarrow.Table`, with the columns that a window log has.

        These are the window, the key, the value and how it fired; or the fields of records (or
        ``value``) and their ``event_time``.

        Args:
            n: how many of the first ones; all if not given.
            timeout_s: how many seconds to read; then what has come is returned.

        Raises:
            ConfigError: see `to_list`; or there are no records, or none in a column, and nothing
                else tells the types.
            OperatorError: records do not fit to each other.

        Example:
            >>> import gearpy as gp
            >>> numbers = gp.StreamApp("look").read(gp.rows([{"n": 1}, {"n": 2}]))
            >>> numbers.to_arrow().column("n").to_pylist()
            [1, 2]
        """
        return self._some("to_arrow", n, timeout_s).to_arrow()

    @ends_at_the_caller
    def to_pandas(self, n: int | None = None, *, timeout_s: float | None = None) -> pd.DataFrame:
        """Return the records as a `pandas.DataFrame`, with the columns of `to_arrow`.

        Raises:
            ConfigError: see `to_arrow`; or pandas is not installed.
            OperatorError: records do not fit to each other.
        """
        require("to_pandas (to_arrow does without)", "pandas")
        return self._some("to_pandas", n, timeout_s).to_pandas()

    @ends_at_the_caller
    def to_polars(self, n: int | None = None, *, timeout_s: float | None = None) -> pl.DataFrame:
        """Return the records as a `polars.DataFrame`, with the columns of `to_arrow`.

        Raises:
            ConfigError: see `to_arrow`; or Polars is not installed.
            OperatorError: records do not fit to each other.
        """
        require("to_polars (to_arrow does without)", "polars")
        return self._some("to_polars", n, timeout_s).to_polars()

    # --------------------------------------------------------------------------------------

    def _some(self, name: str, n: int | None, timeout_s: float | None) -> GatherSink:
        if n is not None:
            check_count(name, "n", n, example="1000", least=1)
        if self._endless and n is None and timeout_s is None:
            sources = ", ".join(each.name for each in self._endless)
            raise ConfigError(
                f"{name}: {sources} has no end: say how much to read, such as {name}(1000) or "
                f"{name}(timeout_s=10)"
            )
        return self._gathered(name, first=n, timeout_s=timeout_s)

    def _patience(self, timeout_s: float | None) -> float | None:
        return _LIVE_S if timeout_s is None and self._endless else timeout_s

    @property
    def _endless(self) -> list[ReadOperator]:
        return [each for each in sources_of(self._step) if not each.source.bounded]

    def _gathered(
        self,
        name: str,
        *,
        first: int | None = None,
        last: int | None = None,
        timeout_s: float | None,
    ) -> GatherSink:
        """Run what is before this stream, and return what has come out of it."""
        from gearpy.cluster.embedded.run import run_for_a_look  # noqa: PLC0415 - starts a cluster
        from gearpy.connectors.gather import GatherSink  # noqa: PLC0415 - loads Arrow

        sink = GatherSink(name, first=first, last=last)
        write = WriteOperator(name="look", inputs=(self._step,), sink=sink)
        application = self._up_to(write)
        run_for_a_look(application, is_enough=lambda: sink.is_full, timeout_s=timeout_s)
        return sink

    def _up_to(self, last: Operator) -> StreamApplication:
        found = set[Operator]()
        pending = [*last.inputs]
        while pending:
            each = pending.pop()
            if each not in found:
                found.add(each)
                pending += each.inputs
        program, needed = self._program, found
        steps = [*(step for step in program.steps if step in needed), last]
        return lower(program.name, steps, parallelism=program.parallelism)

    def _repr_html_(self) -> str:
        from gearpy.views.notebook import mistakes_html  # noqa: PLC0415 - only in notebooks

        step = self._step.inputs[0] if isinstance(self._step, SideOperator) else self._step
        try:
            return physical_plan(self._up_to(step))._repr_html_()
        except ConfigError as error:
            return mistakes_html(self._program.name, error.mistakes)
