"""Topics of a real broker as folders, written by several processes."""

from uuid import uuid4

from gearpy.storage.folder.kafka import KafkaFiles
from tests.servers.kafka import KafkaAddress


def test_a_topic_grows_under_who_writes_it(kafka: KafkaAddress) -> None:
    """Each executor has clients of its own, and another one has added partitions."""
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
