"""What becomes of a record on which the code of one step raises."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.data import Message
from gearpy.task.api.rejects import OnError, StepOnError
from gearpy.testing import MemoryTransactions, Simulation

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

COUNT = 70
BAD = [n for n in range(COUNT) if n % 7 == 3]
GOOD = [n for n in range(COUNT) if n % 7 != 3]


def boom(n: int) -> int:
    if n % 7 == 3:
        raise ValueError(f"bad {n}")
    return n


async def boom_later(n: int) -> int:
    return boom(n)


def boom_of_batch(batch: Any) -> Any:
    for row in batch.to_pylist():
        boom(row["n"])
    return batch


class Boom(gp.Task[int, int]):
    def on_next(self, message: gp.Message[int]) -> Iterator[gp.Message[int]]:
        self.context.output(message._replace(value=boom(message.value)))
        yield from ()


Step = Callable[[gp.Stream[int], StepOnError | None], gp.Stream[Any]]

STEPS: dict[str, Step] = {
    "map": lambda s, e: s.map(boom, on_error=e),
    "filter": lambda s, e: s.filter(lambda n: boom(n) >= 0, on_error=e),
    "flat_map": lambda s, e: s.flat_map(lambda n: iter([n, boom(n)][:1]), on_error=e),
    "map_async": lambda s, e: s.map_async(boom_later, on_error=e),
    "process": lambda s, e: s.process(Boom, on_error=e),
    "process of keys": lambda s, e: s.key_by(lambda n: n % 2).process(Boom, on_error=e),
    "map_with_state": lambda s, e: s.key_by(lambda n: n % 2).map_with_state(
        lambda _, n: (n, boom(n)), initial=0, on_error=e
    ),
    "flat_map_with_state": lambda s, e: s.key_by(lambda n: n % 2).flat_map_with_state(
        lambda _, n: (n, [boom(n)]), initial=0, on_error=e
    ),
    "map_batches": lambda s, e: s.map(lambda n: {"n": n}).map_batches(boom_of_batch, on_error=e),
}


def number(record: Any) -> int:
    found: int = record["n"] if isinstance(record, dict) else record
    return found


def numbers(app: gp.StreamApp) -> gp.Stream[int]:
    return app.read(gp.collection([Message(n, n * 1000) for n in range(COUNT)], partitions=2))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("tasks", [1, 2])
def test_records_set_aside_come_once_with_their_step_and_time(name: str, tasks: int) -> None:
    """Also where the error stands in a chain, and tasks go on from epochs again and again."""
    app, sink = gp.StreamApp("aside", parallelism=tasks), MemoryTransactions()
    stream = STEPS[name](numbers(app), "side")
    stream.merge(stream.errors).write(sink)

    simulation = Simulation(
        app, seed=tasks, delay_ms=2, read_records=1, cut_every_ms=2, crashes_after_epochs=3
    )
    simulation.run()

    found = [each for each in sink.values if isinstance(each, gp.FailedRecord)]
    rest = [each for each in sink.values if not isinstance(each, gp.FailedRecord)]
    assert sorted(map(number, rest)) == GOOD
    assert sorted(number(each.record) for each in found) == BAD
    assert {each.time for each in found} == {n * 1000 for n in BAD}
    assert {each.error for each in found} == {f"ValueError: bad {n}" for n in BAD}
    assert len({each.step for each in found}) == 1
    assert sum(each.skipped_records for each in simulation.clocks()) == 0


@pytest.mark.parametrize("name", STEPS)
def test_a_step_may_skip_what_the_application_fails_on(name: str) -> None:
    app, out = gp.StreamApp("skips"), list[Any]()
    STEPS[name](numbers(app), "skip").write(gp.to_list(out))

    simulation = Simulation(app).run()

    assert sorted(map(number, out)) == GOOD
    assert sum(each.skipped_records for each in simulation.clocks()) == len(BAD)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("of_application", ["skip", "quarantine"])
def test_a_step_may_fail_where_the_application_goes_on(name: str, of_application: OnError) -> None:
    app, out = gp.StreamApp("fails"), list[Any]()
    STEPS[name](numbers(app), "fail").write(gp.to_list(out))

    with pytest.raises(OperatorError, match="bad 3"):
        Simulation(app, on_error=of_application).run()


def test_a_step_may_put_into_quarantine() -> None:
    app, out = gp.StreamApp("kept"), list[int]()
    numbers(app).map(boom, on_error="quarantine").write(gp.to_list(out))

    simulation = Simulation(app)
    simulation.run()

    assert sorted(out) == GOOD
    kept = [record.error.cause for _, record in simulation.quarantined]
    assert sorted(kept) == sorted(f"ValueError: bad {n}" for n in BAD)


def _sum_of(stream: gp.Stream[int]) -> gp.Stream[Any]:
    return stream.key_by(lambda _: 0).window(gp.tumbling("5s")).aggregate(total=gp.agg.sum(boom))


PLACES: dict[str, Callable[[gp.StreamApp, Path], gp.Stream[Any]]] = {
    "timestamp of files": lambda app, path: app.read(
        gp.files(path, timestamp=lambda n: boom(int(n)))
    ),
    "timestamp of a collection": lambda app, _: app.read(
        gp.collection(list(range(COUNT)), timestamp=boom)
    ),
    "timestamp of a generator": lambda app, _: app.read(
        gp.generate(lambda: iter(range(COUNT)), timestamp=boom)
    ),
    "key": lambda app, _: numbers(app).key_by(boom).count(),
    "key of a session": lambda app, _: numbers(app).key_by(boom).window(gp.session("1s")).count(),
    "branch": lambda app, _: numbers(app).branch(a=lambda n: boom(n) < 0).default,
    "inspect": lambda app, _: numbers(app).inspect(boom),
    "aggregate of a window": lambda app, _: _sum_of(numbers(app)),
    "running aggregate": lambda app, _: (
        numbers(app).key_by(lambda _: 0).aggregate(total=gp.agg.sum(boom))
    ),
    "top_n": lambda app, _: numbers(app).key_by(lambda _: 0).top_n(3, by=boom),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_every_place_where_user_code_sees_a_record_obeys_the_application(
    place: str, policy: OnError, tmp_path: Path
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(map(str, range(COUNT))), encoding="utf-8")
    app, out = gp.StreamApp("places"), list[Any]()
    PLACES[place](app, path).write(gp.to_list(out))

    simulation = Simulation(app, on_error=policy)
    simulation.run()

    clocks = simulation.clocks()
    dropped = sum(each.skipped_records + each.quarantined_records for each in clocks)
    assert dropped == len(BAD)
    assert len(simulation.quarantined) == (len(BAD) if policy == "quarantine" else 0)
    assert out


def test_a_line_without_a_time_is_a_bad_one_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("1\nx\n3\n", encoding="utf-8")
    app, good, bad = gp.StreamApp("lines"), list[str](), list[Any]()
    lines = app.read(gp.files(path, timestamp=int, on_bad="side"))
    lines.write(gp.to_list(good))
    lines.errors.write(gp.to_list(bad))

    Simulation(app).run()

    assert good == ["1", "3"]
    assert [(each.record, each.error[:10]) for each in bad] == [("x", "ValueError")]


def test_mistakes_say_what_to_do() -> None:
    app = gp.StreamApp("mistakes")
    stream = numbers(app)

    with pytest.raises(ConfigError, match="map: on_error is 'drop', must be one of fail, skip"):
        stream.map(boom, on_error="drop")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"'map\(boom\)' sets no bad records aside: .*on_error"):
        _ = stream.map(boom).errors
    with pytest.raises(ConfigError, match="write: on_error is 'side', must be one of"):
        stream.write(gp.to_list([]), on_error="side")  # type: ignore[arg-type]
    stream.map(boom, on_error="side").write(gp.to_list([]))
    with pytest.raises(ConfigError, match=r'write its .errors to a sink, .* on_error="skip"'):
        app.build()
