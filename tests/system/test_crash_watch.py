"""How benches that strike a cluster wait, note and report; without a cluster."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ApplicationSummary
from tests.bench import numbered
from tests.bench.crash_watch import CrashReport, CrashWatch, Struck
from tests.bench.faults import Faults
from tests.bench.process_cluster import ProcessCluster

_APP: Final = AppId(7)


class _Signs:
    """Epochs that are stored and shown as a test says; one more is shown at each look."""

    def __init__(self, *, stored: int = 0, shown: int = 0, grows: bool = True) -> None:
        self._stored = stored
        self._shown = shown
        self._grows = grows

    def stored(self) -> int:
        return self._stored

    def newest_shown(self) -> int:
        self._shown += self._grows
        return self._shown


class _Cluster:
    """Answers what a test says: the status of the application, or that the master is away."""

    def __init__(self, *answers: ApplicationStatus | None) -> None:
        self._answers = list(answers)

    @property
    def client(self) -> SimpleNamespace:
        return SimpleNamespace(application=self._application)

    def _application(self, app_id: AppId) -> ApplicationSummary:
        status = self._answers.pop(0)
        if status is None:
            raise GearpyError("the master is away")
        progress = ApplicationProgress(restarts=3)
        return ApplicationSummary(app_id=app_id, name="app", status=status, progress=progress)


def _watch(
    signs: _Signs,
    *answers: ApplicationStatus | None,
    results: Path = Path(),
    healthy_s: float = 60.0,
    say: Callable[[str], None] = lambda _: None,
    tend: Callable[[], None] = lambda: None,
) -> CrashWatch[str, str]:
    cluster = cast("ProcessCluster", _Cluster(*answers))
    return CrashWatch(
        cluster,
        _APP,
        results,
        signs=signs,
        faults=Faults(cluster, Random(1), frozen_s=(0, 0), away_s=(0, 0)),
        report=CrashReport(),
        say=say,
        healthy_s=healthy_s,
        began_s=0.0,
        tend=tend,
    )


# -- the report ----------------------------------------------------------------------------------


def test_a_table_counts_blows_by_kind_and_phase() -> None:
    """Also those of which there were none."""
    blows = [("worker", "early"), ("master", "late"), ("worker", "late"), ("worker", "late")]
    report = CrashReport[str, str]([Struck(1.0, kind, phase) for kind, phase in blows])

    lines = report.table(
        "killed", ["worker", "master", "me"], ["early", "late"], title_chars=8, cell_chars=6
    )

    assert [*lines] == [
        "killed   early  late   all",
        "worker       1     2     3",
        "master       0     1     1",
        "me           0     0     0",
    ]


@pytest.mark.parametrize(
    ("status", "problems", "well"),
    [("succeeded", [], True), ("failed", [], False), ("succeeded", ["a slot is taken"], False)],
)
def test_a_run_has_ended_well_only_without_problems(
    status: str,
    problems: list[str],
    well: bool,  # noqa: FBT001 - of the cases above
) -> None:
    """Results alone are not enough."""
    assert CrashReport[str, str](problems=problems, status=status).has_ended_well == well


def test_a_blow_is_reported_and_said() -> None:
    """With its number and time."""
    said: list[str] = []
    watch = _watch(_Signs(), say=said.append)

    watch.note("worker", "late")

    (struck,) = watch.report.struck
    assert (struck.kind, struck.phase, struck.recovered_s) == ("worker", "late", None)
    assert said == [f"   1 {struck.at_s:7.2f} s: worker (late)"]


# -- waiting -------------------------------------------------------------------------------------


def test_an_application_is_healthy_when_an_epoch_is_shown_that_was_not_stored() -> None:
    """Those that were stored before may be shown although nothing goes on."""
    signs = _Signs(stored=4)

    assert _watch(signs).wait_healthy()
    assert signs.newest_shown() == 6


def test_an_application_that_does_not_recover_is_a_problem() -> None:
    """It is told from which epoch on."""
    watch = _watch(_Signs(shown=4, grows=False), healthy_s=0.0)

    assert not watch.wait_healthy()

    assert watch.report.problems == ["no epoch after 4 for 0 s"]


def test_what_is_waited_for_comes_or_does_not() -> None:
    """Meanwhile somebody tends to what must live."""
    tended: list[Any] = []
    watch = _watch(_Signs(), tend=lambda: tended.append(1))

    assert watch.poll(lambda: bool(tended), 60.0)
    assert not watch.poll(lambda: False, 0.0)

    watch.pause(0.0)
    assert len(tended) == 2


def test_the_end_of_the_stream_is_waited_for(tmp_path: Path) -> None:
    """Also while the master is away."""
    watch = _watch(_Signs(shown=8), None, "active", None, "succeeded", results=tmp_path)

    watch.end_stream(150, within_s=60.0)

    report = watch.report
    assert (tmp_path / "end").read_text() == "650"
    assert (report.end, report.epochs) == (650, 9)
    assert (report.status, report.restarts) == ("succeeded", 3)


def test_the_end_of_the_stream_is_behind_what_the_sources_have_given(tmp_path: Path) -> None:
    """Whatever is shown of that: on a busy machine results come late."""
    partitions = [numbered.numbers(partition, tmp_path) for partition in range(2)]
    for _ in range(3_210):
        next(partitions[0])

    end = numbered.end_after(tmp_path, 100)
    numbered.set_end(tmp_path, end)

    assert 3_210 < end <= 3_210 + 100 + 500
    assert len(list(partitions[0])) == end - 3_210
    assert len(list(partitions[1])) == end
    assert not numbered.was_told_too_late(tmp_path)


def test_an_end_that_was_told_too_late_is_a_problem(tmp_path: Path) -> None:
    """After a restart the source would take it for its end, and the answer would be wrong."""
    partition = numbered.numbers(0, tmp_path)
    for _ in range(200):
        next(partition)
    numbered.set_end(tmp_path, 100)
    with pytest.raises(ValueError, match="the end of the stream, 100, was told at 200, too late"):
        next(partition)

    watch = _watch(_Signs(shown=8), "succeeded", results=tmp_path)
    watch.end_stream(0, within_s=60.0)

    assert watch.report.problems == ["the end of the stream, 500, was told too late"]
