"""Event times of files that tell no zone, are in a record, or are seconds with fractions."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.testing import Simulation


def times(source: Any) -> list[int]:
    app = gp.StreamApp("times")
    results: list[gp.Message] = []
    app.read(source).write(gp.to_list(results, messages=True))
    Simulation(app).run()
    return [message.timestamp for message in results]


TEXTS = ["2026-03-29 01:59:59", "2026-03-29 02:30:00", "2026-10-25 02:30:00"]
EXPECTED = [
    int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * 1000)
    for text in TEXTS
]


@pytest.mark.parametrize("kind", ["csv", "csv rows", "jsonl", "jsonl rows", "parquet", "rows"])
def test_local_times_are_read_with_their_zone(tmp_path: Path, kind: str) -> None:
    rows = [{"n": at, "at": text} for at, text in enumerate(TEXTS)]
    path = tmp_path / f"file.{kind[:7].strip()}"
    if kind.startswith("csv"):
        path.write_text("n,at\n" + "".join(f"{row['n']},{row['at']}\n" for row in rows))
        source = gp.csv(str(path), time="at", zone="Europe/Berlin", rows=kind == "csv rows")
    elif kind.startswith("jsonl"):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        source = gp.jsonl(str(path), time="at", zone="Europe/Berlin", rows=kind == "jsonl rows")
    else:
        naive = [datetime.fromisoformat(row["at"]) for row in rows]  # type: ignore[arg-type]
        table = pa.table({"at": pa.array(naive, pa.timestamp("us"))})
        pq.write_table(table, path)
        source = (
            gp.parquet(str(path), time="at", zone="Europe/Berlin")
            if kind == "parquet"
            else gp.rows(table, time="at", zone="Europe/Berlin")
        )

    assert times(source) == EXPECTED
    assert source.note.endswith("times in at that tell no zone are of Europe/Berlin")


def test_function_of_a_row_may_give_local_times(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("day\n29.03.2026\n")

    def day(row: dict[str, Any]) -> datetime:
        return datetime.strptime(row["day"], "%d.%m.%Y")  # noqa: DTZ007 - the zone is told

    (found,) = times(gp.csv(str(path), time=day, zone="Europe/Berlin"))

    assert found == int(datetime(2026, 3, 28, 23, tzinfo=UTC).timestamp() * 1000)


BERLIN: Any = {"timestamp": datetime.fromisoformat, "zone": "Europe/Berlin"}


async def _texts() -> AsyncIterator[str]:
    for text in TEXTS:
        yield text


@pytest.mark.parametrize("kind", ["files", "collection", "generate", "from_async", "stdin"])
def test_function_of_a_record_may_give_local_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "times.txt"
    path.write_text("\n".join(TEXTS))
    sources: dict[str, Callable[[], Any]] = {
        "files": lambda: gp.files(path, **BERLIN),
        "collection": lambda: gp.collection(TEXTS, **BERLIN),
        "generate": lambda: gp.generate(lambda: TEXTS, **BERLIN),
        "from_async": lambda: gp.from_async(_texts, **BERLIN),
        "stdin": lambda: gp.stdin(**BERLIN),
    }
    source = sources[kind]()
    app, results = gp.StreamApp("times"), list[gp.Message]()
    app.read(source).write(gp.to_list(results, messages=True))

    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        Simulation(app).run()

    assert [message.timestamp for message in results] == EXPECTED
    assert source.note == "times that tell no zone are of Europe/Berlin"


def test_zone_of_a_function_is_that_of_times_without_one() -> None:
    values = [datetime(2026, 7, 1, tzinfo=UTC), 5, datetime(2026, 7, 1)]  # noqa: DTZ001 - the zone is told
    source = gp.collection(values, timestamp=lambda value: value, zone=ZoneInfo("Asia/Tokyo"))  # type: ignore[arg-type,return-value]

    first, second, third = times(source)

    assert (second, first - third) == (5, 9 * 3_600_000)


def test_zone_without_times_and_one_that_is_none_are_refused() -> None:
    with pytest.raises(
        gp.ConfigError, match=r"^files: zone= is of the times that timestamp= gives"
    ):
        gp.files("x", zone="Europe/Berlin")
    with pytest.raises(gp.ConfigError, match=r"^generate: .*'Europe/Berlin'"):
        gp.generate(list, timestamp=len, zone="berlin")
    with pytest.raises(gp.ConfigError, match=r"^window_log: .*zone"):
        gp.window_log("x", zone="Mars")


def test_window_log_may_have_local_times(tmp_path: Path) -> None:
    rows = [{"at": text} for text in TEXTS]
    app = gp.StreamApp("made")
    app.read(gp.rows(rows, time="at")).key_by("at").window(gp.tumbling("1h")).count().write(
        gp.window_log_folder(str(tmp_path / "log"))
    )
    Simulation(app).run()

    source = gp.window_log(tmp_path / "log", time="key", zone="Europe/Berlin", out_of_order="365d")

    assert sorted(times(source)) == EXPECTED
    assert source.note == "times in key that tell no zone are of Europe/Berlin"


@pytest.mark.parametrize("rows", [False, True])
def test_time_in_a_record_may_be_seconds_with_fractions(tmp_path: Path, rows: bool) -> None:  # noqa: FBT001
    path = tmp_path / "file.jsonl"
    path.write_text('{"a": 1, "meta": {"ts": 1695.25}}\n{"a": 2, "meta": {"ts": 1700}}\n')

    source = gp.jsonl(str(path), time="meta.ts", time_unit="s", columns=["a"], rows=rows)

    assert times(source) == [1_695_250, 1_700_000]


def test_plan_tells_the_zone_that_nobody_gave() -> None:
    source = gp.rows([{"at": "2026-03-29 01:00:00"}], time="at")

    assert source.note == "times in at that tell no zone are of UTC"
    assert gp.rows([{"at": 5}], time="at").note == ""
