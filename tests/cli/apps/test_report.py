"""``gear report`` writes what a cluster tells of a run into a file."""

import json
from pathlib import Path

import pytest

from gearpy.messages.client import DescribeApplication, Refused
from tests.cli.build import Gear


def test_a_report_has_what_the_cluster_knows(gear: Gear, tmp_path: Path) -> None:
    path = tmp_path / "shop.html"

    shown = gear("report", "shop", "-o", str(path))

    html = path.read_text(encoding="utf-8")
    assert shown.startswith(f"wrote {path} (")
    assert "missing: measurements: its app master does not give them" in shown
    for words in (
        "map(price)",
        "executor 1 lost: killed by signal 9",
        "exactly-once",
        "streaming.batch-max",
        "kafka://ada@broker/shop",
    ):
        assert words in html


def test_a_run_that_has_ended_has_a_report(gear: Gear, tmp_path: Path) -> None:
    path = tmp_path / "orders.html"
    gear.cluster.instead[DescribeApplication] = lambda _: Refused(reason="nobody knows")

    known = json.loads(gear("report", "3", "-o", str(path), "--json"))

    assert known["file"] == str(path)
    assert known["missing"][0].startswith("processors, tasks and errors: ")
    assert "it has failed: map(price)" in path.read_text(encoding="utf-8")


def test_without_a_file_its_name_is_that_of_the_application(
    gear: Gear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    gear("report", "shop")

    assert [each.name for each in tmp_path.glob("*.html")] == ["shop-2.html"]


def test_a_file_that_cannot_be_written_is_named(gear: Gear, tmp_path: Path) -> None:
    assert "name another with -o" in gear("report", "shop", "-o", str(tmp_path), code=2)
