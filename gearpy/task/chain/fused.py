"""One loop for a chain of row operators: map, filter, flat_map.

The loop is generated as Python source and compiled once for a chain, so that a record costs a
few bytecodes and the users' calls, at any length of the chain. When user code raises, the
line of the generated loop tells the operator and its local variables hold the record: nothing
is spent on that while all goes well. A loop that may go on behind a bad record also notes where
the output of each record begins.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, CoroutineType, FrameType
from typing import Any, Final, Literal

from msgspec import Struct

from gearpy.errors import OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.failure import USER_ERRORS, operator_error, raised_by_user, shown
from gearpy.task.api.rejects import Rejects
from gearpy.task.chain.stage import Stage

_INDENT: Final = "    "
_LOOPS_MAX: Final = 16  # Python takes 20 nested blocks; two more are around them.
#: A flat_map at the end takes a list that fits as a whole. The call comes for the braces.
_TAKE_LIST: Final = (
    "many = {}",
    "if type(many) is list and len(out) + len(many) < limit:",
    "    out += many; times += [t] * len(many)",
    "    continue",
)


class RowOperator(Struct, frozen=True):
    """A function over single records, and its name for people."""

    kind: Literal["map", "filter", "flat_map"]
    name: str
    function: Callable[[Any], Any]


class FusedStage(Stage):
    """A chain of row operators as one generated loop.

    Args:
        limit: records after which a flat_map hands over its results; then it waits to be
            pulled on, so that one exploding record does not fill the memory.
        rejects: the rule for a record that user code raises on. It is the one that entered
            the loop; its results are taken back, as far as they were not handed over.
    """

    def __init__(
        self, operators: Sequence[RowOperator], *, limit: int, rejects: Rejects | None = None
    ) -> None:
        assert operators
        self.name = " > ".join(operator.name for operator in operators)
        self._operators = operators
        self._rejects = rejects or Rejects()
        source, self._line_of = _generate(operators, goes_on=self._rejects.may_go_on)
        self._takes = {  # Lines that begin to iterate over the results of a flat_map.
            at for at, line in enumerate(source.splitlines(), 1) if line.endswith(" in many:")
        }
        code = compile(source, "<gearpy fused loop>", "exec")
        names: dict[str, Any] = {f"f{i}": op.function for i, op in enumerate(operators)}
        names |= {"limit": limit, "errors": USER_ERRORS, "reject": self._reject}
        exec(code, names)  # noqa: S102 - the source is made here, of fixed words only
        self._loop: Callable[[Batch], Iterator[Batch]] = names["loop"]
        self._code: CodeType = names["loop"].__code__

    def process(self, batch: Batch) -> Iterator[Batch]:
        try:
            for results in self._loop(batch):
                if type(results.values[0]) is CoroutineType:
                    break
                yield results
            else:
                return
        except USER_ERRORS as error:
            raise self._blame(error) from error
        raise self._unawaited(results.values, results.timestamps)

    def operator_at(self, frames: Iterable[tuple[FrameType, int]]) -> str:
        """Return the name of the operator that works in a stack; of all, if that is not known."""
        for frame, line in frames:
            if frame.f_code is self._code and line in self._line_of:
                return self._operators[self._line_of[line][0]].name
        return self.name

    def _reject(self, error: BaseException, value: Any, time: int) -> None:
        self._rejects.take(value, time, self._blame(error), place=self.place)

    def _blame(self, error: BaseException) -> OperatorError:
        raised = raised_by_user(error)
        for frame, line in traceback.walk_tb(raised.__traceback__):
            if frame.f_code is self._code and line in self._line_of:
                index, variable = self._line_of[line]
                many = frame.f_locals.get("many")
                if (
                    line in self._takes
                    and isinstance(raised, TypeError)
                    and not (hasattr(type(many), "__iter__") or hasattr(type(many), "__getitem__"))
                ):
                    if type(many) is CoroutineType:
                        many.close()
                    raised = TypeError(
                        f"flat_map(f) must return an iterable, it returned {shown(many)}; use map, "
                        "or return [] for nothing"
                    )
                return operator_error(
                    self._operators[index].name,
                    raised,
                    record=frame.f_locals[variable],
                    event_time_ms=frame.f_locals["t"],
                )
        return operator_error(self._operators[0].name, raised)

    def _unawaited(self, out: list[Any], times: list[int]) -> OperatorError:
        """Blame the last function that makes records for coroutines that it returned."""
        makes = [each for each in self._operators if each.kind != "filter"]
        cause = "the function returned a coroutine, which nobody awaits: use map_async"
        blamed = OperatorError(
            operator=(makes or self._operators)[-1].name,
            cause=cause,
            record=shown(out[0]),
            event_time_ms=times[0],
        )
        for each in out:
            if type(each) is CoroutineType:
                each.close()  # Python would warn of each.
        return blamed


def fused_stages(
    operators: Sequence[RowOperator], *, limit: int, rejects: Rejects | None = None
) -> list[FusedStage]:
    """Return the chain as few stages: each flat_map nests a loop, and Python limits that."""
    parts: list[list[RowOperator]] = [[]]
    loops = 0
    for operator in operators:
        loops += operator.kind == "flat_map"
        if loops > _LOOPS_MAX:
            parts.append([])
            loops = 1
        parts[-1].append(operator)
    return [FusedStage(part, limit=limit, rejects=rejects) for part in parts]


def _generate(
    operators: Sequence[RowOperator], *, goes_on: bool
) -> tuple[str, dict[int, tuple[int, str]]]:
    """Return the source, and for each line with a user's call the operator and its input."""
    # Of maps each record has one result, with its own time: then times need not be gathered.
    is_each = not goes_on and all(each.kind == "map" for each in operators)
    times = "batch.timestamps" if is_each else "[]"
    lines = [
        "def loop(batch):",
        f"    out = []; times = {times}; emit = out.append; stamp = times.append",
        "    for v, t in zip(batch.values, batch.timestamps):",
    ]
    if goes_on:
        lines += ["        kept = len(out)", "        try:"]
    line_of: dict[int, tuple[int, str]] = {}
    depth, variable, in_flat_map = 3 if goes_on else 2, "v", False
    for index, operator in enumerate(operators):
        step, calls = _step(operator, index, variable, is_last=index == len(operators) - 1)
        line_of |= {len(lines) + 1 + at: (index, variable) for at in calls}
        lines += [_INDENT * depth + line for line in step]
        variable = variable if operator.kind == "filter" else f"v{index}"
        if operator.kind == "flat_map":
            depth, in_flat_map = depth + 1, True
    indent = _INDENT * depth
    lines.append(f"{indent}emit({variable})" + ("" if is_each else "; stamp(t)"))
    if in_flat_map:
        lines.append(f"{indent}if len(out) >= limit:")
        lines.append(f"{indent}    yield batch.giving(out, times)")
        lines.append(f"{indent}    out = []; times = []; emit = out.append; stamp = times.append")
        if goes_on:
            lines.append(f"{indent}    kept = 0")
    if goes_on:
        lines.append("        except errors as error:")
        lines.append("            del out[kept:], times[kept:]")
        lines.append("            reject(error, v, t)")
    lines.append("    if out: yield batch.giving(out, times)")
    return "\n".join(lines) + "\n", line_of


def _step(
    operator: RowOperator, index: int, variable: str, *, is_last: bool
) -> tuple[list[str], list[int]]:
    """Return the lines of an operator, and the places of the lines that run the user's code."""
    call = f"f{index}({variable})"
    if operator.kind == "map":
        return [f"v{index} = {call}"], [0]
    if operator.kind == "filter":
        return [f"if not {call}: continue"], [0]
    if not is_last:
        return [f"many = {call}", f"for v{index} in many:"], [0, 1]
    take_list = [line.format(call) for line in _TAKE_LIST]
    return [*take_list, f"for v{index} in many:"], [0, len(take_list)]
