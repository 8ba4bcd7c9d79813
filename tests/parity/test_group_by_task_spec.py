"""Promises of Gearpump's `GroupByTaskSpec` and `TransformTaskSpec`.

There a transform's output appears on the watermark, too; here only windows wait for it.
"""

from gearpy.core.window.windows import GlobalWindows
from gearpy.ids import MAX_MS
from gearpy.messages.data import Message
from gearpy.task.aggregates.fold import Fold, WindowFold, WindowResult
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.fused import FusedStage, RowOperator
from tests.task.build import Bench

JOIN = Fold(kind="fold", first=str, add=lambda joined, value: joined + value)


def test_groups_appear_on_the_watermark() -> None:
    """`GroupByTaskSpec`: each group is an own operator; its output comes with the watermark."""
    bench = Bench(
        lambda context: ChainTask(
            context,
            lambda c: [WindowFold(c, "fold", GlobalWindows(), str.lower, JOIN, limit=10)],
        )
    ).open()

    bench.send(Message("a", 1), Message("b", 2), Message("A", 3), watermark_ms=10)
    bench.run()
    before = bench.target.values
    bench.send(watermark_ms=MAX_MS)
    bench.run()

    assert before == []
    results = [value for value in bench.target.values if isinstance(value, WindowResult)]
    assert [(result.key, result.value) for result in results] == [("a", "aA"), ("b", "b")]


def test_transform_gives_its_output_at_once() -> None:
    """`TransformTaskSpec`, with the deviation above: rows need no watermark."""
    upper = FusedStage([RowOperator("map", "upper", str.upper)], limit=10)
    bench = Bench(lambda context: ChainTask(context, lambda _: [upper])).open()

    bench.send(Message("a", 1))
    bench.run()

    assert bench.target.messages == [Message("A", 1)]
