"""Event times of files that tell no zone, are in a record, or are seconds with fractions."""

import json
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
