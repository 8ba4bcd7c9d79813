"""Records that are larger than a frame between processes: named, counted, and no restart."""

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped] # Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped] # The same.
import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.errors import OperatorError
from gearpy.messages.client import Artifact, DescribeApplication, ListQuarantined

PROGRAM: Final = """
    import gearpy as gp

    def rows(args):
        app = gp.StreamApp("rows")
        numbers = app.read(gp.collection(range(100)))
        grown = numbers.map(lambda n: {"n": n, "body": "x" * (200_000 if n == 37 else 3_000)})
        by_number = grown.key_by(lambda row: row["n"], parallelism=4)
        sizes = by_number.map_with_state(lambda _, row: (0, [row["n"], len(row["body"])]))
        sizes.write(gp.jsonl_folder(args[0]))
        return app

    def columns(args):
        app = gp.StreamApp("columns")
        table = app.read(gp.parquet(args[1])).key_by("n", parallelism=4)
        longest = table.window(gp.global_window()).max("body")
        longest.map(lambda found: [found.key, len(found.value)]).write(gp.jsonl_folder(args[0]))
        return app

    def raises(args):
        app = gp.StreamApp("raises")
        given = [(n, "x" * (1_500_000 if n == 37 else 3_000)) for n in range(100)]
        sizes = app.read(gp.collection(given)).map(lambda row: [row[0], 3_000 + 0 // (row[0] - 37)])
        sizes.write(gp.jsonl_folder(args[0]))
        return app
"""
#: 40 records of 3 kB are together more than this, too.
FRAME_BYTES: Final = 65_536


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    config = load(env={}, overrides={"transport.frame-max-bytes": str(FRAME_BYTES)})
    with LocalCluster(config, executors="process") as started:
        yield started


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "large.py"
    file.write_text(dedent(PROGRAM))
    bodies = ["x" * (200_000 if n == 37 else 3_000) for n in range(100)]
    pq.write_table(pa.table({"n": list(range(100)), "body": bodies}), tmp_path / "rows.parquet")
    return file


def artifact_of(program: Path, attr: str) -> Artifact:
    args = (str(program.parent / "out"), str(program.parent / "rows.parquet"))
    return Artifact(kind="file", location=str(program), attr=attr, args=args)


@pytest.mark.parametrize("attr", ["rows", "columns", "raises"])
def test_a_record_that_is_too_large_goes_to_quarantine_alone(
    cluster: LocalCluster, program: Path, attr: str
) -> None:
    policy = {"application.on-error": "quarantine"}
    running = cluster.client.submit(attr, artifact_of(program, attr), executors=2, config=policy)
    assert running.wait().status == "succeeded"
    (record,) = cluster.client.ask(ListQuarantined(app_id=running.app_id)).records
    assert cluster.client.ask(DescribeApplication(app_id=running.app_id)).restarts == 0

    files = (program.parent / "out").glob("*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert sorted(map(json.loads, lines)) == [[n, 3_000] for n in range(100) if n != 37]
    assert "37" in record.error.record
    if attr == "raises":
        assert "it cannot be given back" in record.error.cause
    else:
        assert f"over the limit of {FRAME_BYTES}: raise transport.frame-max-bytes" in (
            record.error.cause
        )


def test_a_record_that_is_too_large_is_no_reason_for_a_restart(
    cluster: LocalCluster, program: Path
) -> None:
    running = cluster.client.submit("rows", artifact_of(program, "rows"), executors=2)
    with pytest.raises(OperatorError, match=r"raise transport\.frame-max-bytes") as raised:
        running.wait()
    assert cluster.client.ask(DescribeApplication(app_id=running.app_id)).restarts == 0

    assert "{'n': 37, 'body': 'xxx" in raised.value.record
    assert "map" in raised.value.operator
