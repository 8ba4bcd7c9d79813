"""Lines that are parsed as they are read, and those that cannot be."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.task.api.counters import TaskCounters
from gearpy.task.api.rejects import Rejects
from gearpy.task.sources.partition import SourcePartition
from gearpy.task.time.late import LateRecords
from gearpy.testing import Simulation

KEYS = st.text(st.characters(exclude_characters='="', exclude_categories=["Z", "C"]), min_size=1)
VALUES = st.text(st.characters(exclude_categories=["C"]))


@given(st.dictionaries(KEYS, VALUES | st.just(True)))
def test_logfmt_gives_back_what_was_written(values: dict[str, Any]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    line = " ".join(
        key if value is True else f"{key}={quoted(value)}" for key, value in values.items()
    )

    assert gp.logfmt()(line) == values


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a=1 b=x", {"a": 1, "b": "x"}),
        ("  a=1\tb=  ", {"a": 1, "b": ""}),
        ("flag", {"flag": True}),
        ("", {}),
    ],
)
def test_logfmt_takes_plain_values(line: str, found: dict[str, Any]) -> None:
    assert gp.logfmt(a=int)(line) == found


@pytest.mark.parametrize("line", ['a="open', "=1", 'a="1"b=2', "a=1 =2"])
def test_logfmt_refuses_what_is_no_pair(line: str) -> None:
    with pytest.raises(ValueError, match=r"no key=value at character \d"):
        gp.logfmt()(line)


def test_mistakes_in_a_pattern_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="is no regular expression"):
        gp.regex("(?P<a>")
    with pytest.raises(ConfigError, match="has no named group"):
        gp.regex(r"\d+")
    with pytest.raises(ConfigError, match="there is no group 'statsu': there are ip, status"):
        gp.regex(r"(?P<ip>\S+) (?P<status>\d+)", statsu=int)
    with pytest.raises(ConfigError, match="parse is 5, must be a function of a line"):
        gp.files("*.log", parse=5)  # type: ignore[call-overload]


ACCESS = gp.regex(r"(?P<ip>\S+) (?P<at>\d+) (?P<path>\S+)", at=int)


def an_access_log(path: Path) -> Path:
    lines = [f"10.0.0.{n} {n * 1000} /{n % 3}" for n in range(30)]
    lines[7], lines[20] = "-- rotated --", "10.0.0.20 soon /2"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_bad_lines_come_once_as_errors(tmp_path: Path) -> None:
    app, good, bad = gp.StreamApp("access"), list[Any](), list[Any]()
    path = an_access_log(tmp_path / "access.log")
    hits = app.read(
        gp.files(path, parse=ACCESS, timestamp=lambda hit: hit["at"], on_bad="side"), name="hits"
    )
    hits.key_by("path").window(gp.tumbling("10s")).count().write(gp.to_list(good))
    hits.errors.write(gp.to_list(bad))

    done = gp.run(app)

    assert sum(result.value for result in good) == 28
    assert sorted(each.record for each in bad) == ["-- rotated --", "10.0.0.20 soon /2"]
    assert done.progress.records_in == 28


@pytest.mark.parametrize("on_bad", ["skip", "fail"])
@pytest.mark.parametrize("policy", ["skip", "quarantine", "fail"])
def test_bad_lines_follow_their_file_or_the_application(
    tmp_path: Path, on_bad: Any, policy: Any
) -> None:
    app, good = gp.StreamApp("access"), list[Any]()
    path = an_access_log(tmp_path / "access.log")
    app.read(gp.files(path, parse=ACCESS, on_bad=on_bad)).write(gp.to_list(good))
    simulation = Simulation(app, on_error=policy)

    if (on_bad, policy) == ("fail", "fail"):
        with pytest.raises(OperatorError, match="does not match"):
            simulation.run()
        return
    simulation.run()

    assert len(good) == 28
    assert len(simulation.quarantined) == (2 if (on_bad, policy) == ("fail", "quarantine") else 0)


def test_a_bad_line_counts_once_however_often_a_followed_file_is_asked(tmp_path: Path) -> None:
    path = an_access_log(tmp_path / "access.log")
    source = gp.files(
        path, parse=ACCESS, timestamp=lambda hit: 1 // (hit["at"] - 5000), follow=True
    )
    counters = TaskCounters()
    rejects = Rejects("skip", counters)
    reader = source.open(str(path), None)
    late = LateRecords("keep", counters)
    partition = SourcePartition(
        "p", reader, source="files", late=late, counters=counters, rejects=rejects
    )

    read = [partition.read(100, now_ms) for now_ms in range(5)]
    partition.close()

    assert [batch is None for batch in read] == [False, True, True, True, True]
    assert counters.skipped_records == 3
