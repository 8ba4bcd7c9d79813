"""Runs that end when they have caught up, night after night, against plain Python."""

import gzip
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.errors import ConfigError, GearpyError
from tests.cluster.night_build import CONFIG, night, shown

GAP_MS: Final = 10_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def append(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(text)


# -- files of rows ----------------------------------------------------------------------------


def visits(rng: Random, since_ms: int, count: int) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        since_ms += rng.randrange(4_000)
        yield {"user": rng.choice("abc"), "at": since_ms}


def sessions_of(records: Iterable[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Return key, start, end and count of each session, in plain Python."""
    found: list[tuple[str, int, int, int]] = []
    for user in "abc":
        times = sorted(each["at"] for each in records if each["user"] == user)
        first = 0
        for at, time_ms in enumerate(times):
            if at + 1 == len(times) or times[at + 1] - time_ms >= GAP_MS:
                found.append((user, times[first], time_ms + GAP_MS, at + 1 - first))
                first = at + 1
    return found


def sessions() -> gp.StreamApp:
    app = gp.StreamApp("sessions")
    records = app.read(gp.jsonl("in/*.jsonl*", schema={"user": str, "at": int}, time="at"))
    counts = records.key_by("user").window(gp.session("10s")).count()
    counts.map(lambda r: [r.key, r.start, r.end, r.value]).write(gp.jsonl_folder("out"))
    return app


def test_sessions_stay_open_over_night_and_go_on_with_new_and_grown_files() -> None:
    rng, records = Random(5), list[dict[str, Any]]()
    for number in range(3):
        since_ms = records[-1]["at"] if records else 1_000_000
        new = list(visits(rng, since_ms, 60))
        # The beginning stands in the file of the night before.
        for at, each in enumerate(new):
            day = number - (at < 20 and number > 0)
            append(f"in/day{day}.jsonl", json.dumps(each) + "\n")
        append(f"in/day{number}.jsonl", '{"user": "a", "at"')  # Being written.
        records += new

        summary = night(sessions())

        closed = [s for s in sessions_of(records) if s[2] <= records[-1]["at"]]
        assert shown() == sorted(map(list, closed), key=str)
        assert summary.progress.open_windows == len(sessions_of(records)) - len(closed) > 0
        assert summary.progress.records_in - summary.progress.records_before == 60
        assert summary.progress.late_records == 0
        half = Path(f"in/day{number}.jsonl")
        half.write_text(half.read_text().removesuffix('{"user": "a", "at"'))


def test_nothing_new_is_quick_and_writes_nothing() -> None:
    append("in/day.jsonl", '{"user": "a", "at": 1}\n{"user": "a", "at": 99999}\n')
    night(sessions())
    files = sorted(Path("out").rglob("*"))
    began = time.process_time()

    summary = night(sessions())

    assert time.process_time() - began < 2
    assert summary.progress.records_in == summary.progress.records_before == 2
    assert sorted(Path("out").rglob("*")) == files


def test_a_last_line_without_its_end_counts_if_it_is_whole_and_files_come_packed() -> None:
    append("in/a.jsonl", '{"user": "a", "at": 1}')
    assert night(sessions()).progress.records_in == 1
    append("in/a.jsonl", '\n{"user": "a", "at": 2}\n')
    with gzip.open("in/b.jsonl.gz", "wt") as packed:
        packed.write('{"user": "b", "at": 3}\n')
    assert night(sessions()).progress.records_in == 3
    assert night(sessions()).progress.records_in == 3


def test_a_file_that_became_another_is_told_of() -> None:
    append("in/a.jsonl", '{"user": "a", "at": 1}\n')
    night(sessions())
    Path("in/a.jsonl").write_text('{"user": "abcdef", "at": 1234}\n{"user": "a", "at": 1}\n')
    with pytest.raises(Exception, match="another file than the one of which 23 bytes"):
        night(sessions())


def test_no_file_at_all_is_a_quiet_night() -> None:
    assert night(sessions()).progress.records_in == 0
    append("in/a.jsonl", '{"user": "a", "at": 1}\n')
    assert night(sessions()).progress.records_in == 1


# -- a log that grows, and a join -----------------------------------------------------------------


def joined(*, follow: bool) -> gp.StreamApp:
    app = gp.StreamApp("joined")

    def read(name: str) -> Any:
        lines = app.read(
            gp.files(name, timestamp=lambda line: int(line.split()[1]), follow=follow), name=name
        )
        return lines.map(str.split).key_by(lambda pair: pair[0])

    pairs = read("orders.log*").join_interval(
        read("payments.log*"), before="5s", after="5s", combine=lambda a, b: [a[0], a[1], b[1]]
    )
    pairs.write(gp.jsonl_folder("out"))
    return app


@pytest.mark.parametrize("follow", [False, True])
def test_two_logs_that_grow_at_different_speed_are_joined_over_nights(*, follow: bool) -> None:
    """The one that is behind holds the join back, and the end of a night is no end of time."""
    rng, sides = Random(7), {"orders.log": list[tuple[str, int]](), "payments.log": []}
    for _ in range(3):
        for name, side in sides.items():
            at = side[-1][1] if side else 1_000_000
            behind = 20 if name == "orders.log" else 40  # One of them ends well before the other.
            for _ in range(behind):
                at += rng.randrange(3_000)
                side.append((rng.choice("xyz"), at))
                append(name, "{} {}\n".format(*side[-1]))
            append(name, "x 9999")  # A line that is being written.

        summary = night(joined(follow=follow))

        assert summary.progress.late_records == 0
        wanted = [
            [a[0], str(a[1]), str(b[1])]
            for a in sides["orders.log"]
            for b in sides["payments.log"]
            if a[0] == b[0] and abs(a[1] - b[1]) <= 5_000
        ]
        found = shown()
        assert [each for each in found if each not in wanted] == []
        assert len(found) == len({str(each) for each in found})
        for name in sides:
            Path(name).write_text(Path(name).read_text().removesuffix("x 9999"))
    assert found == sorted(wanted, key=str)


def test_a_log_that_was_rotated_is_read_to_its_end_first() -> None:
    def app() -> gp.StreamApp:
        app = gp.StreamApp("log")
        app.read(gp.files("app.log")).write(gp.jsonl_folder("out"))
        return app

    append("app.log", "1\n2\n")
    night(app())
    append("app.log", "3\n")
    Path("app.log").rename("app.log.1")
    append("app.log", "4\n")
    assert night(app()).progress.records_in == 4
    append("app.log", "5\n")
    assert night(app()).progress.records_in == 5
    assert shown() == ["1", "2", "3", "4", "5"]


# -- other sources --------------------------------------------------------------------------------


def test_poll_asks_until_nothing_is_new_and_a_generator_until_it_ends() -> None:
    rows = sqlite3.connect("rows.db")
    rows.execute("create table t (id integer primary key)")

    def polled(position: int | None) -> tuple[list[int], int]:
        with sqlite3.connect("rows.db") as db:
            query = "select id from t where id > ? order by id limit 3"
            found = [row[0] for row in db.execute(query, (position or 0,))]
        return found, found[-1] if found else position or 0

    async def yielded(position: int | None) -> Any:
        for number in polled(position)[0]:
            yield number, number

    class Simple(gp.SimpleSource[int]):
        def read(self, position: int | None) -> Any:
            while True:
                found, position = polled(position)
                yield from ((each, each) for each in found)
                if not found:
                    yield None

    def app() -> gp.StreamApp:
        app = gp.StreamApp("polled")
        for number, source in enumerate(
            (gp.poll(polled, every="1h"), gp.from_async(yielded), Simple())
        ):
            app.read(source, name=f"r{number}").write(gp.jsonl_folder(f"out{number}"))
        return app

    for count in (4, 2, 0):
        with rows:
            rows.executemany("insert into t values (null)", [()] * count)
        night(app())
    assert shown("out0") == shown("out2") == [1, 2, 3, 4, 5, 6]
    assert shown("out1") == [1, 2, 3, 4, 5, 6]


def test_what_cannot_tell_is_refused_and_so_is_a_run_that_keeps_nothing() -> None:
    app = gp.StreamApp("endless")
    app.read(gp.generate(lambda: iter(int, 1))).write(gp.jsonl_folder("out"))
    with pytest.raises(ConfigError, match=r"generate\(.*\) cannot tell what is there now"):
        gp.run(app, until="caught-up", checkpoint="run")
    with pytest.raises(ConfigError, match="needs a place for what it keeps"):
        gp.run(sessions(), until="caught-up")


def test_a_run_does_not_change_between_the_end_and_what_is_there() -> None:
    append("in/a.jsonl", '{"user": "a", "at": 1}\n')
    night(sessions())
    with pytest.raises(GearpyError, match="up to what was there"):
        gp.run(sessions(), checkpoint="run", config=CONFIG)
    append("in/a.jsonl", '{"user": "a", "at": 2}\n')
    assert night(sessions()).progress.records_in == 2  # Nothing is lost by that.


# -- on a cluster ---------------------------------------------------------------------------------


def test_on_a_cluster_it_has_caught_up_and_goes_on_when_it_is_restarted() -> None:
    append("in/a.jsonl", '{"user": "a", "at": 1}\n{"user": "a", "at": 30000}\n')
    app = sessions().scaled({}, until="caught-up")
    with LocalCluster(CONFIG) as cluster, cluster.submitted(app) as running:
        ended = running.wait()
        assert (ended.outcome, ended.progress.open_windows) == ("caught up", 1)
        append("in/b.jsonl", '{"user": "a", "at": 31000}\n{"user": "a", "at": 60000}\n')
        again = cluster.client.restart(running.app_id).wait()
        assert (again.outcome, again.progress.records_in) == ("caught up", 4)
    assert shown() == [["a", 1, 10001, 1], ["a", 30000, 41000, 2]]


# -- a window log between two jobs ----------------------------------------------------------------


def test_a_job_reads_what_the_one_before_has_shown_that_night() -> None:
    def first() -> gp.StreamApp:
        app = gp.StreamApp("first")
        rows = app.read(gp.jsonl("in/*.jsonl*", schema={"user": str, "at": int}, time="at"))
        rows.key_by("user").window(gp.tumbling("10s")).count().write(gp.window_log_folder("log"))
        return app

    def second() -> gp.StreamApp:
        app = gp.StreamApp("second")
        app.read(gp.window_log("log", rows=True)).map(lambda row: row["value"]).write(
            gp.jsonl_folder("out")
        )
        return app

    append("in/a.jsonl", '{"user": "a", "at": 0}\n')
    for number in range(1, 4):
        append("in/a.jsonl", f'{{"user": "a", "at": {number * 20_000}}}\n' * number)
        for app, run in ((first(), "run1"), (second(), "run2")):
            summary = gp.run(app, until="caught-up", checkpoint=run, config=CONFIG)
            assert summary.outcome == "caught up"
        assert shown() == [1, 1, 2][:number], "the newest window is open"
