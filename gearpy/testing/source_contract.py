"""The contract of a source, as a test: `check_source` reads it in every way that gearpy does."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from gearpy.core.epoch.pace import EpochCut
from gearpy.dsl.application import StreamApp
from gearpy.errors import ContractBroken, OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Source
from gearpy.testing.contract import check_releases, comparable
from gearpy.testing.epochs import EpochFaults
from gearpy.testing.simulation import Simulation
from gearpy.testing.transactions import MemoryTransactions
from gearpy.testing.watched import SourcePatience, WatchedPlace, WatchedReader, WatchedSource

#: A partition is cut at so many places, if it has so many.
_CUTS: Final = 25
_BATCH_MAX: Final = 9
_Make: TypeAlias = Callable[[], Source[Any]]
_FAULTS: Final = EpochFaults(
    store_ms=10, given_up=0.1, commits_lost=0.3, commits_repeated=0.3, damaged=0.2
)
_CRASHES_WITHIN_MS: Final = 80


class _Cut(NamedTuple):
    """The end of an epoch: where the reader was, and what it had promised."""

    place: WatchedPlace
    watermark_ms: int
    at: int


class _Partition(NamedTuple):
    """All that a partition has given in one go."""

    name: str
    values: Sequence[Any]
    times: Sequence[int]
    cuts: Sequence[_Cut]
    is_by_arrival: bool


def check_source(
    make: Callable[[], Source[Any]],
    *,
    records: int | None = None,
    has_late: bool = False,
    seeds: int = 10,
    quiet_s: float = 10.0,
    away: Callable[[], Source[Any]] | None = None,
) -> None:
    """Check the promises of a source on which gearpy relies; call this in a test of your source.

    It is read to its end, in portions of all sizes. Then readers are opened at places where that
    one was, over and over, and must give what followed, with the same event times and
    watermarks. Then a whole application reads it, is killed at random moments, goes on from its
    checkpoints, and must show each record once. A source that is not ``replayable`` is only read.

    Args:
        make: returns the source; called often, as each process of a cluster has one of its own.
            Its records must be there before, and stay.
        records: of a source without an end, so many are there, in all partitions together.
        has_late: its records may be older than a promise, as its data are like that.
        seeds: so many applications are run and killed.
        quiet_s: a partition with more to give may be silent for so long.
        away: returns a source whose server cannot be reached: it must say so, one way or another.

    Raises:
        ContractBroken: it breaks a promise; the text names the partition, the promise and the
            remedy. It is an `AssertionError`, too.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import check_source
        >>> check_source(lambda: gp.collection(["a", "b", "c"], partitions=2))
    """
    patience = SourcePatience(quiet_s=quiet_s, has_late=has_late)
    one, other = make(), make()
    if not one.description or one.description != other.description:
        raise ContractBroken(f"description is {one.description!r}, then {other.description!r}")
    if sorted(one.partitions()) != sorted(other.partitions()):
        raise ContractBroken(
            f"{one.description}: partitions() gave {one.partitions()!r:.200}, and of a source made "
            f"anew {other.partitions()!r:.200}: the names must stay, or places are not found again"
        )
    check_releases(f"{one.description}, made and not opened", make)
    whole = list(_read_all(make, patience, records))
    ends = {} if records is None else {each.name: len(each.values) for each in whole}
    patience = SourcePatience(quiet_s=quiet_s, has_late=has_late, ends=ends)
    name = make().description
    for each in whole:
        check_releases(f"{name}, partition {each.name!r}", partial(_look, make, each.name))
    if make().replayable:
        for each in whole:
            _check_resumed(make, each, patience)
        for seed in range(seeds):
            _check_application(make, whole, patience, seed)
    if away is not None:
        _check_away(away, quiet_s)


def _look(make: _Make, partition: str) -> None:
    reader = make().open(partition, None)
    try:
        reader.read_batch(1)
    finally:
        reader.close()
        reader.close()


def _read_all(make: _Make, patience: SourcePatience, records: int | None) -> Iterator[_Partition]:
    """Read every partition; of a source without an end, until all have given so many together."""
    source, rng = WatchedSource(make(), patience), Random(0)
    if records is None and not source.bounded:
        raise ContractBroken(
            f"{source.description} has no end: say how many records are there, as in "
            "check_source(make, records=100)"
        )
    readers = {name: source.open(name, None) for name in sorted(source.partitions())}
    found: dict[str, list[tuple[Any, int]]] = {name: [] for name in readers}
    cuts = {name: [_cut_of(reader)] for name, reader in readers.items()}
    left = records
    while waiting := [name for name in readers if not readers[name].finished]:
        name = rng.choice(waiting)
        most = rng.randint(1, _BATCH_MAX)
        batch = readers[name].read_batch(most if left is None else min(most, left))
        found[name] += _records_of(batch)
        cuts[name].append(_cut_of(readers[name]))
        left = None if left is None else left - (0 if batch is None else len(batch.values))
        if left == 0:
            break
    for name, reader in readers.items():
        reader.close()
        values, times = [value for value, _ in found[name]], [time for _, time in found[name]]
        yield _Partition(name, values, times, cuts[name], reader.is_by_arrival)


def _records_of(batch: Batch[Any] | None) -> list[tuple[Any, int]]:
    if batch is None:
        return []
    values = [comparable(value) for value in batch.values]
    return list(zip(values, batch.timestamps, strict=True))


def _cut_of(reader: WatchedReader) -> _Cut:
    place = reader.snapshot()
    if reader.snapshot() != place:
        raise ContractBroken("a second snapshot differs from the first, and nothing was read")
    return _Cut(place, reader.watermark_ms, reader.count)


def _check_resumed(make: _Make, whole: _Partition, patience: SourcePatience) -> None:
    """Open it where a reader was; what follows is the same, also from places on that way."""
    rng = Random(len(whole.values))
    cuts = whole.cuts if len(whole.cuts) <= _CUTS else rng.sample(whole.cuts, _CUTS)
    for cut in cuts:
        place, at = cut.place, cut.at
        while True:
            reader = WatchedSource(make(), patience).open(whole.name, place)
            try:
                opened_ms = reader.watermark_ms
                at = _follow(reader, whole, at, reads=rng.randint(1, 4))
                if place is cut.place and not whole.is_by_arrival:
                    _check_same("watermark", whole, cut.at, opened_ms, cut.watermark_ms)
                if reader.finished:
                    break
                place = reader.snapshot()
            finally:
                reader.close()


def _follow(reader: WatchedReader, whole: _Partition, at: int, *, reads: int) -> int:
    """Read some portions and compare; return how many records of the partition were read then."""
    while reads and not reader.finished:
        found = _records_of(reader.read_batch(1 + at % _BATCH_MAX))
        for value, time in found:
            if at >= len(whole.values):
                raise ContractBroken(f"partition {whole.name!r} gave {value!r:.100} behind its end")
            _check_same("value", whole, at, value, whole.values[at])
            if not whole.is_by_arrival:
                _check_same("event time", whole, at, time, whole.times[at])
            at += 1
        reads -= bool(found)
    if reader.finished and at < len(whole.values):
        raise ContractBroken(
            f"partition {whole.name!r} was opened at a snapshot and ended after {at} of "
            f"{len(whole.values)} records"
        )
    return at


def _check_same(what: str, whole: _Partition, at: int, found: Any, expected: Any) -> None:
    if found != expected:
        raise ContractBroken(
            f"partition {whole.name!r} was opened at a snapshot, and the {what} at record {at} is "
            f"{found!r:.100}; read in one go it is {expected!r:.100}: snapshot() must return "
            "all that the next records, times and watermarks depend on"
        )


def _check_application(
    make: Callable[[], Source[Any]],
    whole: Sequence[_Partition],
    patience: SourcePatience,
    seed: int,
) -> None:
    """Run a program that writes it to a transactional sink, with crashes; each record is there."""
    rng = Random(seed)
    app, sink = StreamApp("contract"), MemoryTransactions()
    app.read(WatchedSource(make(), patience), parallelism=rng.randint(1, min(2, len(whole)))).write(
        sink
    )
    crashes = [rng.randrange(1, _CRASHES_WITHIN_MS) for _ in range(3)]
    cut: EpochCut = "event-time" if seed % 2 else "position"
    simulation = Simulation(
        app, seed=seed, cut_every_ms=5, crash_at_ms=crashes, may_miss=True, faults=_FAULTS, cut=cut
    )
    try:
        simulation.run()
    except OperatorError as error:
        if isinstance(error.__cause__, ContractBroken):
            raise error.__cause__ from None
        raise
    expected = Counter(value for each in whole for value in each.values)
    found = Counter(comparable(value) for value in sink.values)
    if found != expected:
        raise ContractBroken(
            f"an application that was killed {simulation.crashes} times (seed {seed}) shows too "
            f"much: {list((found - expected).elements())!r:.200}, and lacks: "
            f"{list((expected - found).elements())!r:.200}"
        )


def _check_away(away: Callable[[], Source[Any]], quiet_s: float) -> None:
    """A source whose server is away says so; it neither hangs nor ends."""
    source = WatchedSource(away(), SourcePatience(quiet_s=quiet_s))
    try:
        for name in source.partitions():
            reader = source.open(name, None)
            try:
                while not reader.waits_for:
                    batch = reader.read_batch(1)
                    if batch is not None or reader.finished:
                        raise ContractBroken(f"{source.description}: it gave records, or ended")
            finally:
                reader.close()
    except ContractBroken as error:
        raise ContractBroken(
            f"its server is away, and neither did it raise an error nor has a reader said in "
            f"waits_for what it waits for: {error}"
        ) from error
    except Exception as error:
        if not str(error):
            raise ContractBroken(f"its server is away, and {error!r} has no text") from error
