"""What tends the workers of a cluster inside Spark while that is there."""

import threading
from typing import Any

from gearpy.spark.guest.cluster import WorkerTending

_WAIT_S = 60


def test_it_tells_of_the_end_of_spark() -> None:
    nobody: Any = None
    ended = threading.Event()

    def end() -> None:
        tending.__exit__()
        ended.set()

    tending = WorkerTending(nobody, nobody, nobody, nobody, is_alive=lambda: False, on_end=end)
    with tending:
        assert ended.wait(_WAIT_S)
