"""Bad records of sources as a stream of their own: each comes once, whatever happens."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.testing import MemoryTransactions, Simulation

#: Who is killed closes nothing.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LINES: Final = 70
SCHEMA: Final = {"n": int, "at": int}
HOW: Final[dict[str, dict[str, Any]]] = {
    "columns": {},
    "schema": {"schema": SCHEMA},
    "rows": {"rows": True},
}


def written(path: Path, lines: int = LINES) -> tuple[Path, list[int], dict[int, str]]:
    """Write a file in which every seventh line is bad; return it, its numbers, the bad lines."""
    good, bad, texts = [], {}, []
    for at in range(1, lines + 1):
        text = json.dumps({"n": at, "at": at * 10})
        if at % 7 == 3:
            text = bad[at] = (text[:-3], "null", "{}\x00")[at % 3]
        else:
            good.append(at)
        texts.append(text)
    path.write_text("\n".join(texts), encoding="utf-8")
    return path, good, bad


def shown(bad: gp.BadRecord) -> tuple[str, int, str]:
    where, _, line = bad.where.rpartition(", line ")
    return where, int(line), bad.record


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("tasks", [1, 2])
def test_each_bad_record_comes_once(how: str, tasks: int, tmp_path: Path) -> None:
    """Though all tasks go on from an epoch again and again, and good records wait for a cut."""
    found = [written(tmp_path / f"{at}.jsonl", LINES + at) for at in range(2)]
    app = gp.StreamApp("errors", parallelism=tasks)
    sink = MemoryTransactions()
    source = gp.jsonl(tmp_path, on_bad="side", time="at", out_of_order="1s", **HOW[how])
    numbers = app.read(source, name="numbers")
    numbers.map(lambda row: row["n"]).merge(numbers.errors).write(sink)

    simulation = Simulation(
        app, seed=tasks, delay_ms=2, read_records=1, cut_every_ms=2, crashes_after_epochs=3
    ).run()

    assert simulation.restored > 0
    expected = [(str(file), at, text) for file, _, lines in found for at, text in lines.items()]
    bad = [each for each in sink.values if isinstance(each, gp.BadRecord)]
    assert sorted(map(shown, bad)) == sorted(expected)
    assert {each.step for each in bad} == {"numbers"}
    good = [each for each in sink.values if isinstance(each, int)]
    assert sorted(good) == sorted(n for _, numbers, _ in found for n in numbers)


def test_what_is_promised_holds_for_bad_records(tmp_path: Path) -> None:
    file, _, bad = written(tmp_path / "rows.jsonl")
    app = gp.StreamApp("errors")
    windows: list[gp.WindowResult[None, int]] = []
    numbers = app.read(gp.jsonl(file, on_bad="side", schema=SCHEMA, time="at"))
    numbers.write(gp.to_list([]))
    numbers.errors.window(gp.tumbling("1s"), late="drop").count().write(gp.to_list(windows))

    done = gp.run(app)

    assert sum(window.value for window in windows) == len(bad)
    assert done.progress.skipped_records == len(bad)


SINKS: Final[dict[str, Callable[[Path], gp.Sink[Any]]]] = {
    "csv": gp.csv_folder,
    "jsonl": gp.jsonl_folder,
    "parquet": gp.parquet_folder,
    "arrow": gp.arrow_folder,
}


@pytest.mark.parametrize("name", SINKS)
def test_every_sink_takes_them(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"n": 1}\n{"n": "\xff\x00"}\n{"n"\n')
    app = gp.StreamApp("errors")
    numbers = app.read(gp.jsonl(tmp_path / "in.jsonl", on_bad="side", schema={"n": int}))
    numbers.write(gp.to_list([]))
    numbers.errors.write(SINKS[name](tmp_path / "out"))

    Simulation(app).run()

    again: list[Any] = []
    app = gp.StreamApp("again")
    read: dict[str, Callable[[Path], gp.Source[Any]]] = {
        "csv": gp.csv,
        "jsonl": gp.jsonl,
        "parquet": gp.parquet,
        "arrow": gp.arrow,
    }
    app.read(read[name](tmp_path / "out")).write(gp.to_list(again))
    Simulation(app).run()
    assert [row["record"] for row in again] == ['{"n": "\\xff\x00"}', '{"n"']
    assert [row["time"] for row in again] == [None, None]


def test_bad_records_in_spite_of_other_steps_of_the_source(tmp_path: Path) -> None:
    lines = ['{"n": 1, "at": 100}', "x", '{"n": 2, "at": 5}', "y"]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    app = gp.StreamApp("errors")
    source = gp.jsonl(tmp_path / "in.jsonl", on_bad="side", schema=SCHEMA, time="at")
    outs: list[list[Any]] = [[], [], []]
    numbers = app.read(source, late="side")
    streams: list[gp.Stream[Any]] = [numbers, numbers.late, numbers.errors]
    for stream, out in zip(streams, outs, strict=True):
        stream.write(gp.to_list(out))

    Simulation(app).run()

    assert [row["n"] for row in outs[0]] == [1]
    assert [row["n"] for row in outs[1]] == [2]
    assert [bad.record for bad in outs[2]] == ["x", "y"]


def test_long_records_end(tmp_path: Path) -> None:
    bad = gp.BadRecord.of(b"x" * (3 << 20), step="s", error="e", where="w")

    assert len(bad.record) == 1 << 20


def errors_of_a_step(app: gp.StreamApp, path: Path) -> object:
    return app.read(gp.jsonl(path, on_bad="side")).map(str).errors


def errors_of_nothing(app: gp.StreamApp, path: Path) -> object:
    return app.read(gp.jsonl(path)).errors


def nobody_reads(app: gp.StreamApp, path: Path) -> object:
    app.read(gp.jsonl(path, on_bad="side"), name="bids").write(gp.to_list([]))
    return app.build()


MISTAKES: Final[Sequence[tuple[Callable[[gp.StreamApp, Path], object], str]]] = [
    (errors_of_a_step, "'map(str)' sets no bad records aside: ask for it by on_error="),
    (errors_of_nothing, 'sets no bad records aside: ask for it by on_bad="side" of its source'),
    (nobody_reads, "'bids' sets bad records aside, and nothing reads them: write its .errors to"),
    (lambda _, path: gp.jsonl(path, on_bad="sid"), "must be one of fail, skip, quarantine, side"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "text"), MISTAKES)
def test_mistakes_are_told_before_anything_runs(
    make: Callable[[gp.StreamApp, Path], object], text: str, tmp_path: Path
) -> None:
    file, _, _ = written(tmp_path / "rows.jsonl", 10)

    with pytest.raises(ConfigError) as told:
        make(gp.StreamApp("errors"), file)

    assert text in str(told.value)


def test_the_earlier_word_for_fail_still_works(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"n": 1}\nx\n', encoding="utf-8")
    word: Any = "error"
    app = gp.StreamApp("earlier")
    app.read(gp.jsonl(tmp_path / "in.jsonl", on_bad=word, schema={"n": int})).write(gp.to_list([]))

    with pytest.raises(OperatorError, match="line 2"):
        gp.run(app)


def test_a_column_of_which_there_are_two_is_refused_by_name(tmp_path: Path) -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    app = gp.StreamApp("twice")
    app.read(gp.parquet(tmp_path / "twice.parquet", columns=["a"])).write(gp.to_list([]))

    with pytest.raises(ConfigError, match="columns has 'a', and there are 2 columns of that name"):
        gp.run(app)
