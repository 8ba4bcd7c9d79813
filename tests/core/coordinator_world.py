"""Launches of an application that share the log, one step at a time, in every order."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState
from gearpy.core.coordinator.segments import (
    CoordinatorLogWriter,
    Drop,
    ListNames,
    Load,
    LogContents,
    Save,
    Step,
    Steps,
    read_log,
    run_steps,
)
from gearpy.errors import LogSuperseded, SnapshotDamaged

LOG: Final = "app3/coordinator"
_T = TypeVar("_T")


def a_message(
    key: str, value: str | None = "x", *, type_: str = "set-config"
) -> CoordinatorMessage:
    values = None if value is None else {"value": value}
    return CoordinatorMessage(type=type_, key=key, values=values, host="h", timestamp_ms=1)


def a_writer(
    launch: int = 1, *, nonce: str = "00000000", segments_max: int = 100, known_launch: int = 0
) -> CoordinatorLogWriter:
    return CoordinatorLogWriter(
        log=LOG, launch=launch, nonce=nonce, segments_max=segments_max, known_launch=known_launch
    )


class Store:
    """Files by name; each step is done at once and whole."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def do(self, step: Step) -> Any:
        match step:
            case Save(name, data):
                self.files[name] = data
            case ListNames():
                return sorted(self.files)
            case Load(name):
                if name not in self.files:
                    raise SnapshotDamaged(location=f"{LOG}/{name}", reason="it is not there")
                return self.files[name]
            case Drop(name):
                self.files.pop(name, None)
        return None

    def run(self, steps: Steps[_T]) -> _T:
        return run_steps(steps, self.do)


def contents_of(store: Store) -> LogContents:
    return store.run(read_log(LOG))


def keys_of(state: CoordinatorState) -> set[str]:
    return {each.key for each in state.messages()}


class Launch:
    """A process that opens the log and appends, one key after the other, until it is refused.

    ``opened`` is the keys that it found when it had opened the log; None: it has not.
    """

    def __init__(
        self, writer: CoordinatorLogWriter, keys: Sequence[str], *, is_open: bool = False
    ) -> None:
        self.writer = writer
        self.keys = keys
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.opened: set[str] | None = keys_of(writer.state) if is_open else None
        self.is_idle = True
        self._steps: Steps[None] = self._work(is_open=is_open)
        self._next: Step | None = None
        self.seen: int = 0  # Stands for all that it has been told.
        self._advance(lambda: next(self._steps))

    def _work(self, *, is_open: bool) -> Steps[None]:
        try:
            if not is_open:
                yield from self.writer.open()
                self.opened = keys_of(self.writer.state)
            for key in self.keys:
                self.is_idle = False
                try:
                    yield from self.writer.append([a_message(key)])
                except LogSuperseded:
                    self.refused.append(key)
                else:
                    self.acknowledged.append(key)
                self.is_idle = True
        except LogSuperseded:
            return

    def _advance(self, go_on: Callable[[], Step]) -> None:
        try:
            self._next = go_on()
        except StopIteration:
            self._next = None

    @property
    def is_done(self) -> bool:
        return self._next is None

    def step(self, store: Store) -> None:
        assert self._next is not None
        try:
            answer = store.do(self._next)
        except SnapshotDamaged as error:
            self.seen, missing = hash((self.seen, str(error))), error
            self._advance(lambda: self._steps.throw(missing))
            return
        self.seen = hash((self.seen, str(answer)))
        self._advance(lambda: self._steps.send(answer))


@lru_cache(maxsize=100_000)
def found_by_all(files: frozenset[tuple[str, bytes]]) -> frozenset[str]:
    """Return the keys that a reader finds, and that who opens the log finds, too."""
    store = Store(dict(files))
    found = keys_of(contents_of(store).state)
    heir = a_writer(99)
    store.run(heir.open())
    assert keys_of(heir.state) == found, "who opens finds what a reader finds"
    return frozenset(found)


class World:
    """A store and launches, after a number of steps. Launches are in the order of their openings.

    ``known`` are the keys that were appended before it began.
    """

    def __init__(self, store: Store, launches: Sequence[Launch], known: Iterable[str] = ()) -> None:
        self.store = store
        self.launches = launches
        self.known = set(known)

    def state(self) -> object:
        places = tuple((each.seen, each.is_done, each.is_idle) for each in self.launches)
        return places, frozenset(self.store.files.items())

    def check(self) -> None:
        """Check the promises of the log, as if all launches had crashed now."""
        found = found_by_all(frozenset(self.store.files.items()))
        assert self.known <= found
        openings = sorted(self.launches, key=lambda each: each.writer.opening)
        for at, each in enumerate(openings):
            assert set(each.acknowledged) <= found, "acknowledged is found"
            # All that have opened the log after a launch agree on what it has appended.
            launch = each
            later = openings[at + 1 :]
            views = [each.opened & set(launch.keys) for each in later if each.opened is not None]
            if views:
                assert set(launch.acknowledged) <= views[0], "acknowledged is in the bootstrap"
                assert all(view == views[0] for view in [*views, found & set(launch.keys)])


def explore(make: Callable[[], World]) -> int:
    """Check a world after every step of every order of its launches' steps; count the states."""
    seen = set()
    left: list[tuple[int, ...]] = [()]
    while left:
        order = left.pop()
        world = make()
        for at in order:
            world.launches[at].step(world.store)
        while (state := world.state()) not in seen:
            seen.add(state)
            world.check()
            ready = [at for at, each in enumerate(world.launches) if not each.is_done]
            if not ready:
                break
            left += [(*order, at) for at in ready[1:]]
            order = (*order, ready[0])  # On from here: to come to a state again takes all steps.
            world.launches[ready[0]].step(world.store)
    return len(seen)
