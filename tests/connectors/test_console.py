"""What is printed, and that lines stay whole."""

import io
import threading

import pytest

from gearpy.connectors.console import console
from gearpy.errors import OperatorError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Sink


def write(sink: Sink, *values: object, task: int = 0) -> None:
    writer = sink.open(task, 2)
    writer.write_batch(Batch(list(values), [0] * len(values)))
    writer.close(completed=True)


def test_records_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    write(console(), "to be", 5, ("a", 1))

    assert capsys.readouterr().out == "to be\n5\n('a', 1)\n"


def test_nothing_is_printed_for_nothing() -> None:
    file = io.StringIO()

    write(console(file=file))
    write(console(file=file, columns=["a"]))

    assert file.getvalue() == ""


def test_the_header_is_printed_once_for_all_tasks() -> None:
    file = io.StringIO()
    sink = console(columns=("word", "count"), file=file)

    write(sink, ("to", 2), task=0)
    write(sink, ("be", 3), task=1)

    assert file.getvalue() == "word  count\nto        2\nbe        3\n"


def test_a_record_that_cannot_be_shown_is_named() -> None:
    class Mute:
        def __str__(self) -> str:
            raise ValueError("mute")

    with pytest.raises(OperatorError) as failed:
        write(console(file=io.StringIO()), Mute())

    assert failed.value.operator == "console"


def test_a_character_that_the_terminal_lacks_is_escaped() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")

    write(console(file=file), "caf\xe9")

    assert file.buffer.getvalue() == b"caf\\xe9\n"


def test_a_batch_is_one_write_with_the_end_of_its_last_line() -> None:
    writes = list[str]()
    file = io.StringIO()
    file.write = writes.append  # type: ignore[method-assign, assignment]

    write(console(file=file), "a", "b")

    # `print` writes nothing as its end.
    assert [text for text in writes if text] == ["a\nb\n"]


def test_lines_of_several_tasks_stay_whole() -> None:
    """Also of several sinks, since all may write to the same terminal."""
    file = io.StringIO()

    def work(task: int) -> None:
        for _ in range(50):
            write(console(file=file), *[f"{task}" * 20] * 3, task=task)

    threads = [threading.Thread(target=work, args=(task,)) for task in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = file.getvalue().splitlines()
    assert len(lines) == 600
    assert {len(line) for line in lines} == {20}
    assert all(len(set(line)) == 1 for line in lines)
