"""What a user wrote, as immutable nodes; inputs come before what reads them.

`physical` puts more nodes between them, for what runs but nobody wrote; those come last here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gearpy.task.joins.streams import join_key

if TYPE_CHECKING:
    from gearpy.core.window.aggregates import Aggregate
    from gearpy.core.window.windows import Windows
    from gearpy.task.aggregates.fold import Fold
    from gearpy.task.api.application import TaskFactory
    from gearpy.task.api.interfaces import Sink, Source
    from gearpy.task.chain.fused import RowOperator
    from gearpy.task.columns.row_schema import RowSchema
    from gearpy.task.joins.streams import JoinSpec
    from gearpy.task.joins.table import TableJoinSpec
    from gearpy.task.sources.task import WhenIdle
    from gearpy.task.stages.asynchronous import AsyncFunction
    from gearpy.task.stages.stateful import StateFunction
    from gearpy.task.stages.tables import Form
    from gearpy.task.time.late import SourceLate, WindowLate

__all__ = [
    "AggregateNode",
    "AsyncNode",
    "BatchNode",
    "BranchNode",
    "Dispatcher",
    "DistinctNode",
    "FoldNode",
    "JoinNode",
    "Key",
    "LogNode",
    "MergeAggregateNode",
    "MergeCountNode",
    "MergeNode",
    "Node",
    "PartialAggregateNode",
    "PartialCountNode",
    "ProcessNode",
    "ReadNode",
    "RowNode",
    "RowsNode",
    "SideNode",
    "StateNode",
    "TableJoinNode",
    "TableNode",
    "WriteNode",
    "sources_of",
    "stream_text",
]

Dispatcher: TypeAlias = Literal["default", "shared", "pinned"]


@dataclass(frozen=True, slots=True)
class Key:
    """What a stream is grouped by.

    Attributes:
        function: gives the key of a record.
        columns: the names, if it was given by names; then it can be found in a table, too.
        is_ordered: steps that see the order of a key's records get them by event time.
    """

    function: Callable[[Any], Any]
    columns: tuple[str, ...] = ()
    is_ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Node:
    """One step.

    Attributes:
        name: for people; derived, unless it was given.
        given: the name that the user gave; empty if none.
        kind: the word for it in the stream language.
        inputs: the steps that it reads.
        parallelism: None means: as its input, or the application's.
        key: by which the records of its inputs must come; None: it does not matter.
        origin: the step that was written, where this one is put in its place.
    """

    name: str
    given: str = ""
    kind: str = ""
    inputs: tuple[Node, ...] = ()
    parallelism: int | None = None
    key: Key | None = None
    origin: Node | None = None


def stream_text(stream: object, node: Node) -> str:
    """Return a stream for people: its kind, and the steps that lead to it."""
    names = [node.name]
    while len(node.inputs) == 1:
        node = node.inputs[0]
        names.insert(0, node.name)
    return f"<{type(stream).__name__}: {' > '.join(names)}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadNode(_Node):
    """Records of a source."""

    kind: str = "read"
    source: Source
    late: SourceLate = "keep"
    idle_after_ms: int | None = None
    when_idle: WhenIdle = "hold"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowNode(_Node):
    """A function over single records."""

    operator: RowOperator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchNode(_Node):
    """A function over batches of records in columns.

    Attributes:
        function: gets a batch, returns a batch.
        form: of what it gets and returns.
        times: name of a column of event times for it; None: it gets none.
        takes: schema of the records that it gets, where they come as rows; None: found out.
        gives: schema of the records that it gives; None: dicts, by what it returns.
    """

    kind: str = "map_batches"
    function: Callable[[Any], Any]
    form: Form = "arrow"
    times: str | None = None
    takes: RowSchema | None = None
    gives: RowSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogNode(_Node):
    """Writes a line to the log for one record of ``every``."""

    kind: str = "log"
    level: int
    every: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldNode(_Node):
    """A user's function over the records of a key (None: over all), running or per window.

    Attributes:
        windows: None for running.
        fold: what it does.
        late: what becomes of late records.
    """

    windows: Windows | None
    fold: Fold
    late: WindowLate = "drop"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AggregateNode(_Node):
    """Named aggregates over the records of a key (None: over all), running or per window.

    Attributes:
        windows: None for running.
        aggregates: by the name in the result.
        is_single: there is one, and its value is the result, without a name.
        late: what becomes of late records.
    """

    kind: str = "aggregate"
    windows: Windows | None
    aggregates: Mapping[str, Aggregate]
    is_single: bool = False
    late: WindowLate = "drop"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateNode(_Node):
    """A function over single records and what was kept for their key."""

    kind: str = "map_with_state"
    function: StateFunction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctNode(_Node):
    """Lets the first record of each key pass.

    Attributes:
        within_ms: a key may pass again when so much event time is between; None: never.
    """

    kind: str = "distinct"
    within_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AsyncNode(_Node):
    """A coroutine over single records, many at a time."""

    kind: str = "map_async"
    function: AsyncFunction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinNode(_Node):
    """Records of two streams that belong together; its inputs are left and right.

    They come as ``(side, key, value)``, wrapped by steps that are put before it.

    Attributes:
        left_key: of the records of the left stream.
        right_key: of those of the right one.
        spec: which ones belong together, and what they make.
    """

    kind: str = "join"
    key: Key | None = field(default=Key(join_key))
    left_key: Key
    right_key: Key
    spec: JoinSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableJoinNode(_Node):
    """Records, each with the row that a table has for its key.

    Attributes:
        left_key: of the records.
        right_key: of the rows.
        spec: how they are joined, with the table.
    """

    kind: str = "join_table"
    left_key: Key
    right_key: Key
    spec: TableJoinSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeNode(_Node):
    """The records of several streams, in the order they come."""

    kind: str = "merge"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BranchNode(_Node):
    """Puts each record into the side output of the first predicate that is true of it.

    Attributes:
        predicates: by the tag of the side output.
        default: tag for the rest; None drops them.
    """

    kind: str = "branch"
    predicates: Mapping[str, Callable[[Any], object]]
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideNode(_Node):
    """What its input sets aside under a tag. No step of its own, only another of its outputs."""

    kind: str = "side"
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessNode(_Node):
    """A user's task; with a key, all records of one key go to the same of its tasks."""

    kind: str = "process"
    task: TaskFactory
    dispatcher: Dispatcher = "default"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteNode(_Node):
    """Records go to a sink."""

    kind: str = "write"
    sink: Sink
    dispatcher: Dispatcher = "default"


# What runs, but nobody wrote.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsNode(_Node):
    """Makes rows of tables."""

    kind: str = "rows"
    schema: RowSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableNode(_Node):
    """Makes tables of rows."""

    kind: str = "table"
    schema: RowSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialAggregateNode(_Node):
    """Aggregates each table by window and key, before it is sent to the task of the key."""

    kind: str = "partial"
    of: AggregateNode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeAggregateNode(_Node):
    """Merges what `PartialAggregateNode` gives; what an `AggregateNode` on columns ends with."""

    kind: str = "merge_partial"
    of: AggregateNode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialCountNode(_Node):
    """Counts rows by window and key, before the numbers are sent to the task of the key."""

    kind: str = "partial"
    of: AggregateNode


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeCountNode(_Node):
    """Adds up what `PartialCountNode` gives; what a count of rows in several tasks ends with."""

    kind: str = "merge_partial"
    of: AggregateNode


Node: TypeAlias = (
    ReadNode
    | RowNode
    | BatchNode
    | LogNode
    | FoldNode
    | AggregateNode
    | StateNode
    | DistinctNode
    | AsyncNode
    | JoinNode
    | TableJoinNode
    | MergeNode
    | BranchNode
    | SideNode
    | ProcessNode
    | WriteNode
    | RowsNode
    | TableNode
    | PartialAggregateNode
    | MergeAggregateNode
    | PartialCountNode
    | MergeCountNode
)


def sources_of(node: Node) -> set[ReadNode]:
    """Return the sources from which records of a step may come."""
    found: set[ReadNode] = set()
    pending: list[Node] = [node]
    seen: set[Node] = set()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, ReadNode):
            found.add(each)
        pending += each.inputs
    return found
