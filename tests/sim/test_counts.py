"""The counts of a program and of its tasks are those that a person would count."""

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.app.clock import progress_of
from gearpy.testing import Simulation


class Halves(gp.Task[int, int]):
    def on_next(self, message: gp.Message[int]) -> Iterator[gp.Message[int]]:
        if message.value % 2:
            self.context.output_to("odd", message)
        else:
            yield message


def _grown(
    rng: Random, stream: gp.Stream[int], numbers: list[int], depth: int
) -> Iterator[tuple[list[Any], int | None]]:
    """Give a stream more steps and sinks; yield the list of each sink, and its due count."""
    if rng.random() < 0.5:
        stream = stream.repartition(2)  # Its steps are chained to those before otherwise.
    step = rng.choice(["map", "filter", "flat_map", "side", "window"]) if depth else ""
    rest = [(stream, numbers)]
    if step == "map":
        rest = [(stream.map(lambda n: n + 1), [n + 1 for n in numbers])]
    elif step == "filter":
        rest = [(stream.filter(lambda n: n % 3 > 0), [n for n in numbers if n % 3 > 0])]
    elif step == "flat_map":
        rest = [
            (stream.flat_map(lambda n: [n] * (n % 3)), [n for n in numbers for _ in range(n % 3)])
        ]
    elif step == "side":
        halves = stream.process(Halves)
        rest = [
            (halves, [n for n in numbers if n % 2 == 0]),
            (halves.side("odd"), [n for n in numbers if n % 2]),
        ]
    elif step == "window":
        sums = stream.key_by(lambda n: n % 4).window(gp.tumbling("1s"), late="side").count()
        results, late = list[Any](), list[Any]()
        sums.write(gp.to_list(results))
        sums.late.write(gp.to_list(late))
        yield results, None
        yield late, None
    for each, kept in rest:
        for _ in range(rng.choice([0, 1, 1, 2])):
            out = list[Any]()
            each.write(gp.to_list(out))
            yield out, len(kept)
        if depth:
            yield from _grown(rng, each, kept, depth - 1)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_records_out_are_those_in_all_sinks(seed: int) -> None:
    rng = Random(seed)
    app = gp.StreamApp("counts", parallelism=rng.choice([1, 2]))
    numbers = [rng.randrange(1_000) for _ in range(rng.randrange(1, 60))]
    messages = [gp.Message(n, rng.randrange(9_000)) for n in numbers]
    stream = app.read(gp.collection(messages, partitions=rng.choice([1, 2])))
    rest = list[Any]()
    stream.write(gp.to_list(rest))
    sinks = [(rest, len(numbers)), *_grown(rng, stream, numbers, 3)]
    simulation = Simulation(app, seed=seed)
    simulation.run()

    progress = progress_of(
        simulation.application.dag, {each.task_id: each for each in simulation.clocks()}
    )

    assert progress.records_in == len(numbers)
    assert progress.records_out == sum(len(out) for out, _ in sinks)
    assert all(len(out) == count for out, count in sinks if count is not None)
