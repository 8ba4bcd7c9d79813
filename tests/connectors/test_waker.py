"""The thread that tells readers that there is more: of descriptors, and by looks."""

import os
import socket
import threading
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from gearpy.connectors.files.bytes import GrowingFile
from gearpy.connectors.waker import call_when, call_when_readable, forget
from tests.eventually import DEADLINE_S


def test_a_descriptor_is_told_once_for_each_time_that_it_was_asked_for() -> None:
    calls: SimpleQueue[str] = SimpleQueue()
    here, there = socket.socketpair()
    with here, there:
        assert call_when_readable(here.fileno(), lambda: calls.put("first"))
        there.send(b"one")
        assert calls.get(timeout=DEADLINE_S) == "first"
        there.send(b"two")

        assert call_when_readable(here.fileno(), lambda: calls.put("second"))
        assert calls.get(timeout=DEADLINE_S) == "second"
    assert calls.empty()


def test_the_end_of_a_stream_is_told_and_a_number_that_is_used_again_is_another_one() -> None:
    calls: SimpleQueue[int] = SimpleQueue()
    for turn in range(3):
        reads, writes = os.pipe()
        assert call_when_readable(reads, partial(calls.put, turn))
        os.close(writes)
        assert calls.get(timeout=DEADLINE_S) == turn
        os.close(reads)


def test_what_cannot_be_waited_for_is_said(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("w") as file:
        assert not call_when_readable(file.fileno(), lambda: None)


def test_looks_end_when_they_have_found_something_or_are_forgotten() -> None:
    calls: SimpleQueue[str] = SimpleQueue()
    mine, others, asked = object(), object(), threading.Event()

    def look() -> bool:
        asked.set()
        return False

    def fails() -> bool:
        raise OSError("the file is gone")

    assert call_when(mine, look, lambda: calls.put("never"))
    assert asked.wait(DEADLINE_S)
    forget(mine)
    assert call_when(others, look, lambda: calls.put("replaced"))
    assert call_when(others, fails, lambda: calls.put("found"))
    assert calls.get(timeout=DEADLINE_S) == "found"
    assert calls.empty()


def test_one_that_raises_when_it_is_called_leaves_the_others_alone() -> None:
    calls: SimpleQueue[str] = SimpleQueue()

    def raises() -> None:
        raise ValueError("it has ended")

    assert call_when(object(), lambda: True, raises)
    assert call_when(object(), lambda: True, lambda: calls.put("called"))
    assert calls.get(timeout=DEADLINE_S) == "called"


def test_a_file_has_changed_when_it_has_grown_or_another_one_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    file = GrowingFile(str(path))
    assert file.look_for_change(0) is None, "it is not open"
    assert file.read_at(0, 100) == b"one\n"
    look = file.look_for_change(4)
    assert look is not None
    assert not look()

    with path.open("ab") as more:
        more.write(b"two\n")
    assert look()
    path.rename(tmp_path / "a.log.1")
    path.write_bytes(b"new\n")
    assert look()
    file.close()
