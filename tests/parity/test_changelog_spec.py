"""Promises of Samza's changelog: what a store sends to it, and what it is restored from.

Of `TestStatefulTask` and its `StateStoreTestTask`: messages are put into a store under themselves,
one that begins with "-" deletes. Samza sends each write as it comes; here those of an epoch are
together, so each message is an epoch of its own. Samza's test reads its input once more after the
restart, as it stores no offsets; here the restart goes on where the epoch ended.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gearpy.core.coordinator.log import CoordinatorState
from gearpy.core.coordinator.views import ChangelogPartitions
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.storage.changelog import Changelog, store_segment
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.snapshot_files import SnapshotChain, TaskPart

TASK = TaskId(0, 0)
FIRST = ["1", "2", "3", "2", "99", "-99"]
SECOND = ["4", "5", "5", "-5"]
MANY = 1000


class StoreTask:
    """A task with one store, and a changelog of it. Samza: `StateStoreTestTask`."""

    def __init__(
        self,
        checkpoints: MemoryCheckpoints,
        attempt: int,
        files: Sequence[SnapshotFile] = (),
        *,
        segments_max: int = MANY,
    ) -> None:
        self._checkpoints = checkpoints
        self._epoch = attempt * MANY
        self._changelog = Changelog(
            partitions={TASK: _partition()},
            prefix="k/app1/changelog",
            suffix=f"attempt{attempt}",
            files=files,
            segments_max=segments_max,
        )
        with SnapshotChain(checkpoints, files) as chain:
            self.restored = set(chain.cells(TASK, 0).values())

    def send(self, messages: Iterable[str]) -> None:
        """Let the task process messages, with a commit after each."""
        for message in messages:
            self._epoch += 1
            key = message.removeprefix("-").encode()
            value = None if message.startswith("-") else key
            body = msgspec.msgpack.encode({key: value})

            def delta(body: bytes = body) -> Iterator[tuple[int, bytes]]:
                yield 0, body

            (segment,) = self._changelog.next_segments(self._epoch, {TASK})
            part = TaskPart(task=TASK, head=b"", deltas=[delta])
            stored = store_segment(self._checkpoints, segment, part, chain=())
            self._changelog.on_stored({TASK: stored})

    @property
    def files(self) -> tuple[SnapshotFile, ...]:
        """The changelog, as a manifest lists it."""
        return self._changelog.files

    def read_all(self) -> list[Any]:
        """Return all that was sent to the changelog; None for what was deleted."""
        with SnapshotChain(self._checkpoints, self.files) as chain:
            bodies = [msgspec.msgpack.decode(body) for _, body in chain.sections(TASK)]
        return [value for body in bodies for value in body.values()]


def _partition() -> int:
    (draft,) = ChangelogPartitions(CoordinatorState()).assign([TASK])
    assert draft.values is not None
    return int(draft.values["partition"])


def test_should_start_task_for_first_time() -> None:
    """`testShouldStartTaskForFirstTime`: nothing is restored, each write is in the changelog."""
    task = StoreTask(MemoryCheckpoints(), 1)

    assert task.restored == set()
    task.send(FIRST)

    assert task.read_all() == [b"1", b"2", b"3", b"2", b"99", None]


def test_should_restore_store() -> None:
    """`testShouldRestoreStore`: what was not deleted is there, and later writes come behind."""
    checkpoints = MemoryCheckpoints()
    before = StoreTask(checkpoints, 1)
    before.send(FIRST)

    task = StoreTask(checkpoints, 2, before.files)

    assert task.restored == {b"1", b"2", b"3"}
    task.send(SECOND)
    assert task.read_all() == [b"1", b"2", b"3", b"2", b"99", None, b"4", b"5", b"5", None]
    assert StoreTask(checkpoints, 3, task.files).restored == {b"1", b"2", b"3", b"4"}


def test_log_compaction_keeps_the_last_write_of_each_key() -> None:
    """The changelog topic is made with `cleanup.policy=compact`: restoring reads less."""
    checkpoints = MemoryCheckpoints()
    before = StoreTask(checkpoints, 1, segments_max=2)
    before.send([*FIRST, *SECOND])

    task = StoreTask(checkpoints, 2, before.files)

    assert task.restored == {b"1", b"2", b"3", b"4"}
    assert len(before.files) <= 2
