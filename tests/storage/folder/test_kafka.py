"""Topics as folders, written by several processes: on a real broker, and on one in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.coordinator.log import draft
from gearpy.storage.checkpoints import FolderCheckpoints
from gearpy.storage.coordinator_log import SEGMENTS_MAX, CoordinatorLog
from gearpy.storage.folder import kafka as kafka_files
from gearpy.storage.folder.kafka import KafkaFiles
from gearpy.storage.folder.url import UrlFolder
from tests.servers.kafka import KafkaAddress
from tests.storage.folder.topics_build import Brokers, CountingTopics

PREFIX = "k/app1"


def test_a_topic_grows_under_who_writes_it(kafka: KafkaAddress) -> None:
    first, second = (KafkaFiles(kafka.plain, skip_instance_cache=True) for _ in range(2))
    folder = f"{uuid4().hex}/k/app1/changelog"

    first.pipe_file(f"{folder}/partition-0/a", b"1")
    second.pipe_file(f"{folder}/partition-2/b", b"2")
    first.pipe_file(f"{folder}/partition-2/c", b"3")
    second.pipe_file(f"{folder}/partition-1/d", b"4")

    assert len(first.find(folder)) == 4
    assert first.find(folder) == second.find(folder)
    assert first.cat_file(f"{folder}/partition-1/d") == b"4"
    assert second.cat_file(f"{folder}/partition-2/c") == b"3"


class Process:
    def __init__(self, brokers: Brokers) -> None:
        self.client = CountingTopics(brokers)
        self.files = KafkaFiles("brokers", client=self.client, skip_instance_cache=True)
        self.checkpoints = FolderCheckpoints(UrlFolder(self.files, "gear"))

    @contextmanager
    def asking(self, *steps: str) -> Iterator[None]:
        self.client.asked.clear()
        yield
        assert self.client.asked == [*steps]


def test_an_epoch_takes_a_handful_of_round_trips() -> None:
    """However much is in the store: a file is one, an append of the log four."""
    brokers = Brokers()
    app_master, executor = Process(brokers), Process(brokers)
    log = CoordinatorLog(
        app_master.checkpoints, PREFIX, launch=1, source="app master", wall_ms=lambda: 1
    )

    for epoch in range(130):
        name = f"{PREFIX}/epochs/region0/epoch{epoch}-executor0"
        segment = f"{PREFIX}/changelog/partition-0/epoch{epoch}"
        with executor.asking(*([] if epoch else ["make"]), "send"):
            executor.checkpoints.save(name, [b"x"])
        with executor.asking(*([] if epoch else ["make"]), "send"):
            executor.checkpoints.save(segment, [b"y"])
        app_master.client.asked.clear()
        log.append([draft("set-config", "k", {"v": str(epoch)})])
        appends = 2 if epoch % SEGMENTS_MAX == SEGMENTS_MAX - 1 else 1  # It is compacted, too.
        asked = app_master.client.asked
        assert asked[: 4 * appends] == ["send", "partitions", "ends", "send"] * appends
        assert appends == 2 or len(asked) == 4
        if epoch > 0:
            before = f"{PREFIX}/epochs/region0/epoch{epoch - 1}-executor0"
            app_master.client.asked.clear()
            app_master.checkpoints.drop(before)
            assert app_master.client.asked[-1] == "send"
            assert len(app_master.client.asked) <= 4

    assert executor.checkpoints.names(PREFIX) == app_master.checkpoints.names(PREFIX)


def test_who_opens_the_store_reads_nothing() -> None:
    brokers = Brokers()
    Process(brokers).checkpoints.save(f"{PREFIX}/epochs/a", [b"x"])

    assert Process(brokers).client.asked == []


def test_a_process_that_never_reads_forgets_what_it_has_written() -> None:
    """Another one removes its files; what it needs again it reads."""
    brokers = Brokers()
    writer, other = Process(brokers), Process(brokers)
    with patch.object(kafka_files, "_OWN_MAX", 10):
        for number in range(100):
            writer.checkpoints.save(f"{PREFIX}/epochs/e{number}", [b"x"])
            if number:
                other.checkpoints.drop(f"{PREFIX}/epochs/e{number - 1}")

    with writer.asking("partitions", "ends", "records"):
        writer.files.find(f"gear/{PREFIX}/epochs/")


def test_a_topic_that_was_removed_and_made_again_is_read_anew() -> None:
    brokers = Brokers()
    writer, reader = Process(brokers), Process(brokers)
    for name in "abc":
        writer.checkpoints.save(f"{PREFIX}/epochs/{name}", [b"1"])
    assert len(reader.checkpoints.names(PREFIX)) == 3

    brokers.remove("gear.k.app1.epochs")
    Process(brokers).checkpoints.save(f"{PREFIX}/epochs/d", [b"2"])

    assert reader.checkpoints.names(PREFIX) == [f"{PREFIX}/epochs/d"]
    assert reader.checkpoints.load(f"{PREFIX}/epochs/d", "") == b"2"


_PATHS = st.sampled_from(
    [f"gear/{path}" for path in ("a", "k/b", "k/app1/c", "k/app1/log/d", "k/app1/log/e/f")]
    + [f"gear/k/app1/changelog/partition-{n}/{name}" for n in (0, 2) for name in "xy"]
)
_STEPS = st.tuples(
    st.sampled_from(["pipe", "pipe", "pipe", "rm", "cat", "find", "compact"]),
    st.integers(0, 2),
    _PATHS,
    st.integers(0, 30),
)


@given(st.lists(_STEPS, max_size=40))
def test_all_processes_see_the_same_files(steps: list[tuple[str, int, str, int]]) -> None:
    brokers, model = Brokers(), dict[str, bytes]()
    with patch.multiple(kafka_files, _PIECE_BYTES=8, _SMALL_BYTES=4, _OWN_MAX=3):
        processes = [Process(brokers).files for _ in range(3)]
        for number, (what, who, path, size) in enumerate(steps):
            files = processes[who]
            match what:
                case "pipe":
                    model[path] = b"%d" % number * size
                    files.pipe_file(path, model[path])
                case "rm" if path in model:
                    files.rm_file(path)
                    del model[path]
                case "cat" if path in model:
                    assert files.cat_file(path) == model[path]
                    assert files.info(path)["size"] == len(model[path])
                case "find":
                    assert files.find("gear") == sorted(model)
                    assert files.find(path) == ([path] if path in model else [])
                case "compact":
                    brokers.compact()
        for files in processes:
            assert {path: files.cat_file(path) for path in files.find("gear/k")} == {
                path: data for path, data in model.items() if path.startswith("gear/k/")
            }
