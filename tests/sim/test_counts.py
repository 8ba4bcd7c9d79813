"""The counts of a program and of its tasks are those that a person would count."""

from collections.abc import Iterator, Sized
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.core.app.clock import progress_of
from gearpy.task.stages.plan import physical_plan
from gearpy.testing import Simulation


class Halves(gp.Task[int, int]):
    def on_next(self, message: gp.Message[int]) -> Iterator[gp.Message[int]]:
        if message.value % 2:
            self.context.output_to("odd", message)
        else:
            yield message


class Counts:
    """What each step is due to take and to give, and what each sink has got."""

    def __init__(self) -> None:
        self.taken: dict[str, Sized] = {}
        self.edges: list[tuple[str, str, Sized]] = []  # An output of a step, and who reads it.
        self.sinks: dict[str, tuple[list[Any], int | None]] = {}

    def write(self, stream: gp.Stream[Any], step: str, due: list[int] | None = None) -> None:
        """Write an output of a step to a sink of its own."""
        out, name = list[Any](), f"sink{len(self.sinks)}"
        stream.write(gp.to_list(out), name=name)
        self.sinks[name] = out, None if due is None else len(due)
        self.read(step, name, out if due is None else due)

    def read(self, step: str, reader: str, output: Sized) -> None:
        self.taken[reader] = output
        self.edges.append((step, reader, output))

    def out_of(self, steps: set[str]) -> int:
        """Return how many records these steps write, or send to others, each output once."""
        left = {
            id(out): len(out) for step, to, out in self.edges if step in steps and to not in steps
        }
        return sum(left.values()) + sum(
            len(self.sinks[each][0]) for each in steps & set(self.sinks)
        )


def _grow(
    rng: Random, counts: Counts, before: str, stream: gp.Stream[int], numbers: list[int]
) -> None:
    """Give an output of a step more steps and sinks, chained or not."""
    step = rng.choice(["map", "filter", "flat_map", "side", "window"])
    name = f"step{len(counts.taken)}"
    counts.read(before, name, numbers)
    if rng.random() < 0.5:
        stream = stream.repartition(2)  # Its steps are chained to those before otherwise.
    if step == "window":
        by_key = stream.key_by(lambda n: n % 4)
        sums = by_key.window(gp.tumbling("1s"), late="side").count(name=name)
        counts.write(sums, name)
        counts.write(sums.late, name)
        return
    made: gp.Stream[int]
    if step == "side":
        made = stream.process(Halves, name=name)
        rest = [
            (made, [n for n in numbers if n % 2 == 0]),
            (made.side("odd"), [n for n in numbers if n % 2]),
        ]
    elif step == "map":
        rest = [(stream.map(lambda n: n + 1, name=name), [n + 1 for n in numbers])]
    elif step == "filter":
        made = stream.filter(lambda n: n % 3 > 0, name=name)
        rest = [(made, [n for n in numbers if n % 3 > 0])]
    else:
        made = stream.flat_map(lambda n: [n] * (n % 3), name=name)
        rest = [(made, [n for n in numbers for _ in range(n % 3)])]
    for each, kept in rest:
        goes_on = len(counts.taken) < 12 and rng.random() < 0.7
        for _ in range(rng.choice([0, 1, 2] if goes_on else [1, 2])):
            counts.write(each, name, kept)
        if goes_on:
            _grow(rng, counts, name, each, kept)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_counts_of_the_program_and_of_each_step_are_those_of_plain_python(seed: int) -> None:
    rng, counts = Random(seed), Counts()
    app = gp.StreamApp("counts", parallelism=rng.choice([1, 2]))
    numbers = [rng.randrange(1_000) for _ in range(rng.randrange(1, 60))]
    messages = [gp.Message(n, rng.randrange(9_000)) for n in numbers]
    source = gp.collection(messages, partitions=rng.choice([1, 2]))
    stream = app.read(source, name="source")
    counts.write(stream, "source", numbers)
    for _ in range(rng.choice([0, 1, 2])):
        _grow(rng, counts, "source", stream, numbers)
    simulation = Simulation(app, seed=seed)
    simulation.run()

    reports = {each.task_id: each for each in simulation.clocks()}
    progress = progress_of(simulation.application.dag, reports)

    assert progress.records_in == len(numbers)
    assert progress.records_out == sum(len(out) for out, _ in counts.sinks.values())
    assert all(len(out) == due for out, due in counts.sinks.values() if due is not None)
    for processor in physical_plan(simulation.application).processors:
        steps = {step.name for step in processor.steps}
        tasks = [each for each in reports.values() if each.task_id.processor == processor.number]
        # Their counts are what REST and `gear app describe` add up.
        taken, given = (
            sum(each.records_in for each in tasks),
            sum(each.records_out for each in tasks),
        )
        if known := [step.name for step in processor.steps if step.name in counts.taken]:
            assert taken == len(counts.taken[known[0]]), steps
        if known or "source" in steps:
            assert given == counts.out_of(steps), steps
        else:  # It only hands on what it gets.
            assert given == taken
