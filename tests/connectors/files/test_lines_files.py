"""Files as a source: which, in which order, from where on, and how they may change."""

import bz2
import gzip
import logging
import lzma
import os
from collections.abc import Callable
from pathlib import Path

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.lines_files import FileReader, FileSource, files
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from tests.connectors.reading import rest_of


def a_source(
    *patterns: str | Path,
    timestamp: Callable[[str], int] | None = None,
    bound_ms: int = 0,
    follow: bool = False,
    now_ms: Callable[[], int] = lambda: 0,
) -> FileSource:
    return FileSource(
        patterns,
        timestamp=timestamp,
        bound_ms=bound_ms,
        follow=follow,
        decoder=Decoder("utf-8", "strict"),
        now_ms=now_ms,
    )


def the_reader(source: FileSource) -> FileReader:
    (partition,) = source.partitions() or source.discover(0, 1, ()).find()
    return source.open(partition, None)


def values_of(batch: Batch | None) -> list[str] | None:
    return None if batch is None else batch.values


# -- which files


def test_each_file_is_a_partition_once_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", "d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    found = files(tmp_path / "*.txt", f"{tmp_path}/**/*.txt", tmp_path / "b.txt").partitions()

    assert found == [str(tmp_path / name) for name in ("a.txt", "b.txt", "deep/c.txt")]


def test_files_are_looked_up_once(tmp_path: Path) -> None:
    """Tasks that see different files would read one twice and another not at all."""
    (tmp_path / "a.txt").touch()
    source = files(tmp_path / "*.txt")
    before = source.partitions()

    (tmp_path / "b.txt").touch()

    assert source.partitions() == before


def test_a_name_with_brackets_can_be_meant_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "report[1].txt").touch()

    assert files(tmp_path / "report[1].txt").partitions() == [str(tmp_path / "report[1].txt")]


def test_every_pattern_without_a_file_is_reported(tmp_path: Path) -> None:
    source = files("nowhere/*.txt", tmp_path, "missing.txt", "/nowhere/*.txt")

    with pytest.raises(ConfigError) as refused:
        source.partitions()

    nowhere, folder, missing, whole = refused.value.mistakes
    assert "'nowhere/*.txt' matches no file in /" in nowhere
    assert f"is a folder: write '{tmp_path}/*'" in folder
    assert "'missing.txt' matches no file in /" in missing
    assert whole.endswith("'/nowhere/*.txt' matches no file")


def test_something_that_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConfigError, match="not a regular file"):
        files(tmp_path / "pipe").partitions()


def test_wrong_arguments_are_refused_when_they_are_written() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        files()
    with pytest.raises(ConfigError, match=r"write files\(\*paths\)"):
        files(["a.txt"])  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="soon"):
        files("a.txt", out_of_order="soon")


def test_a_file_that_another_machine_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="same paths"):
        files("*").open(str(tmp_path / "gone.txt"), None)


# -- lines, times and places


def test_event_times_come_from_the_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("5\n20\n15\n")
    reader = the_reader(a_source(tmp_path / "a.txt", timestamp=int, bound_ms=8))

    before = reader.watermark_ms
    read = rest_of(reader)

    assert before == MIN_MS
    assert [message.timestamp for message in read] == [5, 20, 15]
    assert reader.watermark_ms == 12


def test_a_line_without_a_time_is_named(tmp_path: Path) -> None:
    """The user's function raised; what becomes of the line is a setting of the application."""
    (tmp_path / "a.txt").write_text("5\nfive\n6\n")
    reader = the_reader(a_source(tmp_path / "a.txt", timestamp=int))

    assert reader.read_batch(10) == Batch(["5", "6"], [5, 6])

    [(line, error)] = reader.take_refused()
    assert (line, error.operator, error.record) == ("five", "files(timestamp)", "'five'")


def test_a_file_that_became_shorter_cannot_be_resumed(tmp_path: Path) -> None:
    """Other lines stand there now; to go on would lose some silently."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    source = a_source(path)
    reader = the_reader(source)
    reader.read_batch(2)

    path.write_text("1\n")

    with pytest.raises(GearpyError, match="has 2 bytes, cannot resume at 8"):
        source.open(str(path), reader.snapshot())


def test_a_file_replaced_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    reader = the_reader(a_source(path))

    (tmp_path / "new.txt").write_text("two\n")
    (tmp_path / "new.txt").replace(path)

    with pytest.raises(GearpyError, match="was replaced by another file"):
        reader.read_batch(1)


# -- files that grow


def test_a_followed_file_is_idle_until_a_line_is_complete(tmp_path: Path) -> None:
    """Half a line is no line; nothing is held back for it."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntw")
    times = iter([0, 100, 200])  # The first one is asked for by the look for files.
    reader = the_reader(a_source(path, follow=True, now_ms=lambda: next(times)))

    first, second = reader.read_batch(10), reader.read_batch(10)

    assert first == Batch(["one"], [100])
    assert (second, reader.idle, reader.finished) == (None, True, False)

    with path.open("a") as file:
        file.write("o\n")
    third = reader.read_batch(10)
    reader.close()

    assert third == Batch(["two"], [200])
    assert (reader.idle, reader.watermark_ms) == (False, 200)


@given(pieces=st.lists(st.text(alphabet="ab\r\né", max_size=5), max_size=12))
def test_a_followed_file_gives_the_same_lines_however_it_grows(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    """Property: reading between any two writes neither loses nor cuts a line."""
    path = tmp_path_factory.mktemp("grow") / "a.txt"
    path.touch()
    reader = the_reader(a_source(path, follow=True))
    read: list[str] = []

    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece.encode())
        while (batch := reader.read_batch(3)) is not None:
            read += batch.values
    reader.close()

    complete = "".join(pieces).split("\n")[:-1]
    assert read == [line.removesuffix("\r") for line in complete]
    assert reader.snapshot()["offset"] == "".join(pieces).encode().rfind(b"\n") + 1


def test_a_followed_file_that_was_cut_is_read_from_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Said in the log and counted: half a line may be lost."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthr")
    reader = the_reader(a_source(path, follow=True))
    reader.read_batch(10)

    path.write_text("new\n")
    with caplog.at_level(logging.WARNING):
        read = [values_of(reader.read_batch(10)) for _ in range(3)]
    reader.close()

    assert read == [None, ["new"], None]
    assert reader.restarts == 1
    assert "3 bytes without a newline dropped" in caplog.text


@pytest.mark.parametrize("count", [3, 5, 500])
@pytest.mark.parametrize("portion", [1, 10, 1000])
def test_a_followed_file_that_was_cut_and_has_grown_again_is_read_from_its_start(
    tmp_path: Path, count: int, portion: int
) -> None:
    """Before anybody looked; whether its end had been read or not."""
    path = tmp_path / "a.txt"
    path.write_text("".join(f"one{number}\n" for number in range(5)))
    reader = the_reader(a_source(path, follow=True))
    read = values_of(reader.read_batch(portion)) or []
    new = [f"new {number}" for number in range(count * 10)]
    path.write_text("".join(f"{line}\n" for line in new))
    for _ in range(count * 10 + 20):
        read += values_of(reader.read_batch(portion)) or []
    reader.close()

    assert read[-len(new) :] == new
    assert set(read) <= {*new, *(f"one{number}" for number in range(5))}
    assert reader.restarts == 1


def test_a_rotated_file_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    reader = the_reader(a_source(path, follow=True))
    reader.read_batch(10)

    path.rename(tmp_path / "a.txt.1")
    gone = reader.read_batch(10)
    path.write_text("three and more\n")
    with (tmp_path / "a.txt.1").open("a") as file:
        file.write("two\n")
    read = [values_of(reader.read_batch(10)) for _ in range(3)]
    reader.close()

    assert gone is None
    assert read == [["two"], None, ["three and more"]]
    assert reader.restarts == 1


def test_a_followed_file_resumes_behind_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntw")
    source = a_source(path, follow=True, now_ms=lambda: 7)
    reader = the_reader(source)
    reader.read_batch(10)
    place = reader.snapshot()
    reader.close()

    path.write_text("one\ntwo\n")
    again = source.open(str(path), place)
    read = again.read_batch(10)
    again.close()

    assert (place["offset"], place["watermark_ms"]) == (4, 7)
    assert values_of(read) == ["two"]


# -- packed files

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_file_is_read_as_its_content(ending: str, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30_000)]
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(PACKERS[ending]("\n".join(lines).encode()))
    source = a_source(path)
    reader = the_reader(source)

    read = [line for _ in range(2) for line in values_of(reader.read_batch(9_000)) or ()]
    again = source.open(str(path), reader.snapshot())

    assert read == lines[: len(read)]
    rest = rest_of(again)
    assert rest == rest_of(reader)
    assert [message.value for message in rest] == lines[len(read) :]


def test_a_packed_file_that_is_damaged_or_became_shorter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    packed = gzip.compress(b"one\ntwo\n" * 10)
    path.write_bytes(packed)
    source = a_source(path)
    reader = the_reader(source)
    reader.read_batch(5)

    path.write_bytes(gzip.compress(b"one\n"))
    with pytest.raises(GearpyError, match=r"a\.gz has 4 bytes in it, cannot resume at 20"):
        source.open(str(path), reader.snapshot()).read_batch(5)
    for ending in ("gz", "zst"):
        damaged = tmp_path / f"damaged.{ending}"
        damaged.write_bytes(packed[:-9])
        with pytest.raises(GearpyError, match=r"cannot be unpacked behind byte 0 .*complete\?"):
            the_reader(a_source(damaged)).read_batch(5)


def test_a_packed_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n"))

    with pytest.raises(ConfigError, match=r"a\.gz is packed, so nothing will be added"):
        the_reader(a_source(tmp_path / "*.gz", follow=True))
