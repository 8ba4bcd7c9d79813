"""The search for records that end processes, in a world where they do."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.processes.child_process import exit_cause
from gearpy.cluster.processes.fork_server import UNKNOWN_CODE
from gearpy.core.app.deadly.deaths import died_by_itself
from gearpy.core.app.deadly.probing import Part, Probing, quota
from gearpy.ids import TaskId

DEATH = "killed by signal 11 (SIGSEGV)"


def parts_of(counts: Sequence[int], tasks: int) -> dict[Part, int]:
    """Return so many partitions, shared by tasks, and how many records each has."""
    return {(TaskId(0, at % tasks), f"p{at}"): count for at, count in enumerate(counts)}


@dataclass
class Deadly:
    """Sources that are read by attempts, each of which goes on from the newest epoch.

    ``kills`` those who work on them, ``unreadable`` those who read them, too.
    """

    counts: Mapping[Part, int]
    kills: Collection[tuple[Part, int]] = ()
    unreadable: Collection[tuple[Part, int]] = ()
    at_once: int = 700  #: Read in an epoch that nobody has limited.
    steps_over: bool = True
    committed: dict[Part, int] = field(default_factory=dict)
    left_out: list[tuple[Part, int]] = field(default_factory=list)
    shown: list[tuple[Part, int]] = field(default_factory=list)
    deaths: int = 0
    searched: int = 0
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.probing = Probing(steps_over=self.steps_over)
        self.committed = dict.fromkeys(self.counts, 0)

    @property
    def place(self) -> dict[Part, bytes]:
        return {part: b"%d" % at for part, at in self.committed.items() if at < self.counts[part]}

    def run(self) -> bool:
        """Run attempts until all is read, or there is to be none; tell whether it is."""
        while self.place:
            began_ms = self.now_ms
            epochs = self._attempt()
            if epochs is None:
                continue
            self.deaths += 1
            lived_ms = self.now_ms - began_ms
            verdict = self.probing.on_death(self.place, epochs, DEATH, self.now_ms, lived_ms)
            self.searched += verdict == "search"
            if verdict == "stop":
                return False
        return True

    def _attempt(self) -> int | None:
        """Read until a process dies, after so many epochs; None: it ends, or begins again."""
        tasks = {task for task, _ in self.counts}
        orders = {each.task_id: each for each in self.probing.orders(tasks)}
        epochs, at = 0, dict(self.committed)
        while True:
            read: list[tuple[Part, int]] = []
            out: list[tuple[Part, int]] = []
            for task in sorted(tasks):
                order = orders.get(task)
                mine = [part for part in at if part[0] == task]
                limit = self.at_once if order is None else quota(order.records, epochs)
                if order is not None and order.leaves_out and not epochs:
                    ((_, name),) = [(task, name) for name in order.partitions or ()]
                    out.append(((task, name), at[task, name]))
                elif order is not None and order.partitions is not None:
                    allowed = [part for part in mine if part[1] in order.partitions]
                    for part in allowed:
                        read += self._next(part, at[part], limit or 0)
                else:
                    left = self.at_once if limit is None else limit
                    for part in mine:
                        found = self._next(part, at[part], left)
                        left -= len(found)
                        read += found
            whats = [order.leaves_out for order in orders.values() if order.leaves_out]
            if any(each in self.unreadable for each in read):
                return epochs
            if any(each in self.unreadable for each in out) and "record" in whats:
                return epochs
            if any(each in self.kills for each in read):
                return epochs
            for part, number in (*read, *out):
                at[part] = number + 1
            self.shown += read
            self.left_out += out
            self.committed = dict(at)
            epochs, self.now_ms = epochs + 1, self.now_ms + 150
            if self.probing.on_epoch(self.place, epochs, self.now_ms) or not self.place:
                return None

    def _next(self, part: Part, at: int, count: int) -> list[tuple[Part, int]]:
        return [(part, number) for number in range(at, min(at + count, self.counts[part]))]

    @property
    def everything(self) -> list[tuple[Part, int]]:
        return [(part, number) for part, count in self.counts.items() for number in range(count)]


def assert_only_these_are_missing(world: Deadly) -> None:
    """All records are shown once but the deadly ones, which are left out."""
    bad = {*world.kills, *world.unreadable}
    assert sorted(world.left_out) == sorted(bad)
    assert sorted(world.shown) == sorted(each for each in world.everything if each not in bad)
    assert not world.probing.is_searching or world.place == {}


@pytest.mark.parametrize("at", [0, 1, 15, 16, 17, 128, 699, 700, 1023, 1024, 2999])
@pytest.mark.parametrize("how", ["kills", "unreadable"])
def test_one_record_of_a_file_is_left_out(at: int, how: str) -> None:
    """After eight deaths at most, the last of one that reads it; the first two are as always."""
    part = (TaskId(0, 0), "p0")
    world = Deadly(parts_of([3000], 1), **{how: [(part, at)]})  # type: ignore[arg-type] # by name

    assert world.run()
    assert_only_these_are_missing(world)
    assert world.deaths <= (7 if how == "kills" else 8)
    assert world.deaths - world.searched == 1


@pytest.mark.parametrize("counts", [c for n in (1, 2, 3) for c in product((0, 1, 3), repeat=n)])
@pytest.mark.parametrize("tasks", [1, 2])
def test_any_records_of_a_few_partitions_are_left_out(counts: tuple[int, ...], tasks: int) -> None:
    """Each set of deadly records, however many tasks share the partitions."""
    parts = parts_of(counts, tasks)
    everything = Deadly(parts).everything
    for bits in range(min(1 << len(everything), 128)):
        kills = [each for at, each in enumerate(everything) if bits >> at & 1]
        world = Deadly(parts, kills=kills)
        assert world.run()
        assert_only_these_are_missing(world)


@given(
    counts=st.lists(st.integers(0, 2000), min_size=1, max_size=9),
    tasks=st.integers(1, 4),
    at_once=st.integers(1, 5000),
    data=st.data(),
)
def test_nothing_else_is_left_out(
    counts: list[int], tasks: int, at_once: int, data: st.DataObject
) -> None:
    parts = parts_of(counts, tasks)
    everything = Deadly(parts).everything
    places = st.lists(st.sampled_from(everything), max_size=3) if everything else st.just([])
    world = Deadly(parts, data.draw(places), data.draw(places), at_once=at_once)
    world.kills = [each for each in world.kills if each not in world.unreadable]
    assert world.run()
    bad = {*world.kills, *world.unreadable}
    assert sorted(set(world.left_out)) == sorted(bad)
    assert sorted(world.shown) == sorted(each for each in world.everything if each not in bad)


def test_without_a_search_the_second_death_at_a_place_is_the_last() -> None:
    part = (TaskId(0, 0), "p0")
    world = Deadly(parts_of([3000], 1), kills=[(part, 2000)], at_once=300, steps_over=False)

    assert not world.run()
    assert (world.deaths, world.probing.why_stopped) == (2, "")


def test_deaths_far_apart_are_not_of_one_cause() -> None:
    probing = Probing(steps_over=False)
    part = (TaskId(0, 0), "p0")
    for at in range(9):
        assert probing.on_death({part: b"%d" % at}, 2, DEATH, at, 5_000) == "restart"
        assert probing.on_death({part: b"%d!" % at}, 1, DEATH, at, 20_000) == "restart"


def test_what_dies_of_its_state_is_not_searched_for_long() -> None:
    probing = Probing(steps_over=True)
    place = {(TaskId(0, 0), "p0"): b"7"}

    verdicts = [probing.on_death(place, 0, DEATH, at, 0) for at in range(3)]

    assert verdicts == ["restart", "search", "stop"]
    assert "before anything more is read" in probing.why_stopped


def test_a_search_ends_though_deaths_do_not_depend_on_what_is_read() -> None:
    probing = Probing(steps_over=True)
    place = {(TaskId(0, at), f"p{at}"): b"0" for at in range(2)}
    verdict, deaths = "restart", 0
    while verdict != "stop":
        verdict = probing.on_death(place, 3, DEATH, deaths, 0)
        deaths += 1
        for epoch in (1, 2, 3):  # None of them has anything to give.
            probing.on_epoch(place, epoch, deaths + 20_000)

    assert deaths < 70


def test_ever_more_is_read_behind_the_place() -> None:
    sizes = [quota(16, epochs) for epochs in range(200)]

    assert sizes[:21] == [0, *[16] * 20]
    grown = [each for each in sizes if each is not None]
    assert grown == sorted(grown)
    assert sizes[len(grown) :] == [None] * (200 - len(grown))


@pytest.mark.parametrize(
    ("cause", "is_own"),
    [
        ("killed by signal 11 (SIGSEGV)\nFatal Python error", True),
        ("killed by signal 6 (SIGABRT)", True),
        ("killed by signal 9: out of memory: the processes of its worker may", True),
        ("exited with code 0 before it was asked to", True),
        ("exited with code 13", True),
        (exit_cause(-11, b"Fatal Python error: Segmentation fault\n"), True),
        (exit_cause(-9, b"", why_killed="out of memory"), True),
        (exit_cause(-9, b"", why_killed="maybe out of memory"), False),
        (exit_cause(-9, b""), False),
        (exit_cause(3, b"my last words\n"), True),
        (exit_cause(143, b""), False),
        (exit_cause(UNKNOWN_CODE, b""), False),
        ("killed by signal 15 (SIGTERM)", False),
        ("its worker is lost", False),
        ("it does not answer", False),
        ("", False),
    ],
)
def test_only_what_a_process_did_counts(cause: str, *, is_own: bool) -> None:
    assert died_by_itself(cause) is is_own
