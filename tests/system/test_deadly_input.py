"""Records that end each process that works on them, or reads them: named, or left out."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.errors import ApplicationFailed
from gearpy.messages.client import Artifact, DescribeApplication, ListQuarantined, QuarantinedRecord

#: The processes die for real; ``DEADLY`` of the 1,000 records do it.
PROGRAM: Final = """
    import os
    import signal
    import time

    import gearpy as gp

    DEADLY = {500}

    def crash(n):
        if n in DEADLY:
            os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(60)  # Another thread takes the signal.
        return n

    def leave(row):
        if row["n"] in DEADLY:
            os._exit(3)
        return row["n"]

    def one_file(args):
        app = gp.StreamApp("one-file")
        numbers = app.read(gp.jsonl(args[1] + "/*.jsonl")).map(lambda row: crash(row["n"]))
        numbers.write(gp.jsonl_folder(args[0]))
        return app

    def elsewhere(args):
        app = gp.StreamApp("elsewhere")
        rows = app.read(gp.jsonl(args[1] + "/*.jsonl", rows=True), parallelism=2)
        keyed = rows.key_by(lambda row: row["n"] % 7, parallelism=2)
        keyed.map_with_state(lambda _, row: (0, leave(row))).write(gp.jsonl_folder(args[0]))
        return app

    def reading(args):
        app = gp.StreamApp("reading")
        rows = app.read(gp.jsonl(args[1] + "/*.jsonl", rows=True, time=lambda row: crash(row["n"])))
        rows.map(lambda row: row["n"]).write(gp.jsonl_folder(args[0]))
        return app

    class Log(gp.Source):
        replayable = bounded = True

        def partitions(self):
            return ["orders/0", "orders/1", "orders/2"]

        def open(self, partition, resume):
            place = resume or {"offset": 0, "end": 400, "watermark_ms": 0}
            return LogReader(int(partition[-1]), place["offset"])

    class LogReader(gp.SourceReader):
        def __init__(self, part, offset):
            self.part, self.offset = part, offset

        def read_batch(self, max_records):
            stop = min(self.offset + max_records, 334 - (self.part > 0))
            given = [at * 3 + self.part for at in range(self.offset, stop)]
            self.offset, self.finished = stop, not given
            return gp.Batch(given, [0] * len(given)) if given else None

        def snapshot(self):
            return {"offset": self.offset, "end": 400, "watermark_ms": 0}

    def partitioned(args):
        app = gp.StreamApp("partitioned")
        app.read(Log(), parallelism=2).map(crash).write(gp.jsonl_folder(args[0]))
        return app
"""
_SETTINGS: Final = {"checkpoint.interval-ms": "200", "application.backoff-base-ms": "10"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "deadly.py"
    file.write_text(dedent(PROGRAM))
    (tmp_path / "in").mkdir()
    return file


def write_numbers(program: Path, files: int) -> None:
    for at in range(files):
        lines = "".join(f'{{"n": {n}}}\n' for n in range(at, 1000, files))
        (program.parent / "in" / f"part{at}.jsonl").write_text(lines)


def run(program: Path, attr: str, policy: str, *, executors: int = 1) -> tuple[Any, ...]:
    """Run a program in processes; return its failure, its restarts and its quarantine."""
    folder = program.parent
    args = (str(folder / "out"), str(folder / "in"))
    artifact = Artifact(kind="file", location=str(program), attr=attr, args=args)
    with LocalCluster(load(env={}, overrides=_SETTINGS), executors="process") as cluster:
        running = cluster.client.submit(
            attr, artifact, executors=executors, config={"application.on-error": policy}
        )
        try:
            running.wait()
            failure = ""
        except ApplicationFailed as failed:
            failure = str(failed)
        restarts = cluster.client.ask(DescribeApplication(app_id=running.app_id)).restarts
        return failure, restarts, cluster.client.ask(ListQuarantined(app_id=running.app_id)).records


def shown(program: Path) -> list[int]:
    files = (program.parent / "out").glob("*.jsonl")
    return sorted(json.loads(line) for file in files for line in file.read_text().splitlines())


def test_the_second_death_names_file_and_place(program: Path) -> None:
    """And is the last, though there would be more restarts."""
    write_numbers(program, 1)

    failure, restarts, _ = run(program, "one_file", "fail")

    assert "killed by signal 11 (SIGSEGV), again at one place of its input: jsonl(" in failure
    assert "part0.jsonl" in failure
    assert "set application.on-error to 'quarantine'" in failure
    assert restarts <= 2  # Where a machine is slow, nobody knows at first why it is gone.


@pytest.mark.long
@pytest.mark.parametrize(
    ("attr", "files", "executors", "place"),
    [
        ("one_file", 1, 1, "part0.jsonl, line 501: this record ends"),
        ("elsewhere", 2, 3, "part0.jsonl, line 251: this record ends"),
        ("reading", 1, 1, "part0.jsonl, line 501: to read on from there ends"),
        ("partitioned", 0, 2, "orders/2, offset 166: this record ends"),
    ],
)
def test_all_other_records_arrive_once(
    program: Path, attr: str, files: int, executors: int, place: str
) -> None:
    write_numbers(program, files)

    failure, restarts, quarantined = run(program, attr, "quarantine", executors=executors)

    assert failure == ""
    assert restarts <= 2
    assert shown(program) == [n for n in range(1000) if n != 500]
    record: QuarantinedRecord
    (record,) = quarantined
    assert place in record.error.cause
    assert "500" in record.error.record
    assert record.error.cause.endswith(("killed by signal 11 (SIGSEGV)", "exited with code 3"))


@pytest.mark.long
def test_several_of_them_are_left_out_one_after_the_other(program: Path) -> None:
    program.write_text(program.read_text().replace("{500}", "{0, 500, 501, 999}"))
    write_numbers(program, 1)

    failure, _, quarantined = run(program, "one_file", "skip")

    assert (failure, len(quarantined)) == ("", 0)
    assert shown(program) == [n for n in range(1000) if n not in {0, 500, 501, 999}]
