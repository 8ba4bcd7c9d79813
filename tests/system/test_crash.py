"""How benches strike a cluster, wait and report; without a cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ApplicationSummary
from tests.bench import numbered
from tests.bench.crash import Blow, CrashReport, CrashRun, Phase, Struck, Target
from tests.bench.epoch_signs import EpochSigns
from tests.bench.numbered import Verdict
from tests.bench.process_cluster import ProcessCluster

_APP: Final = AppId(7)


class _Signs(EpochSigns):
    """Epochs that are stored and shown as a test says; one more is shown at each look."""

    def __init__(self, *, stored: int = 0, shown: int = 0, grows: bool = True) -> None:
        self.at = stored
        self._at_shown = shown
        self._grows = grows
        self.log: frozenset[str] = frozenset()
        self.prepared: frozenset[str] = frozenset()

    def stored(self) -> int:
        return self.at

    def newest_shown(self) -> int:
        self._at_shown += self._grows
        return self._at_shown

    def log_files(self) -> frozenset[str]:
        return self.log

    def pending(self) -> frozenset[str]:
        return self.prepared


class _Cluster:
    """Answers what a test says: the status of the application, or that the master is away."""

    folder = Path()

    def __init__(self, *answers: ApplicationStatus | None) -> None:
        self._answers = list(answers)

    @property
    def client(self) -> SimpleNamespace:
        return SimpleNamespace(ask=self._application)

    def _application(self, question: GetApplication) -> ApplicationSummary:
        status = self._answers.pop(0)
        if status is None:
            raise GearpyError("the master is away")
        progress = ApplicationProgress(restarts=3)
        return ApplicationSummary(
            app_id=question.app_id, name="app", status=status, progress=progress
        )


class _Run(CrashRun):
    """Strikes nobody; something happens at each blow, and each look."""

    at_blow: Callable[[], object] = staticmethod(lambda: None)
    at_look: Callable[[], object] = staticmethod(lambda: None)

    def harm(self, kind: str) -> bool:
        self.at_blow()
        return kind != "nobody"

    def tend(self) -> None:
        self.at_look()


def _run(
    signs: EpochSigns,
    *answers: ApplicationStatus | None,
    results: Path = Path(),
    healthy_s: float = 60.0,
    say: Callable[[str], None] = lambda _: None,
) -> _Run:
    target = Target(
        program="", check=lambda *_: Verdict(), signs=lambda *_: signs, healthy_s=healthy_s
    )
    cluster = cast("ProcessCluster", _Cluster(*answers))
    run = _Run(target, cluster, results, rng=Random(1), say=say)
    run.app_id = _APP
    return run


# -- the report ----------------------------------------------------------------------------------


def test_a_report_counts_blows_by_kind_and_phase() -> None:
    blows: list[tuple[str, Phase]] = [
        ("worker", "running"),
        ("master", "commit"),
        ("worker", "commit"),
        ("worker", "commit"),
    ]
    struck = [Struck(1.0, kind, phase, at) for at, (kind, phase) in enumerate(blows)]
    report = CrashReport(struck, ["amiss"], ["by the way"], outcome=Verdict(lost=1, wrong=["w"]))

    lines = [*report.lines()]

    assert [line.split() for line in lines[:4]] == [
        ["running", "commit", "all"],
        ["master", "0", "1", "1"],
        ["worker", "1", "2", "3"],
        ["all", "1", "3", "4"],
    ]
    assert "1.50 s (median) to 3.00 s" in lines[4]
    assert lines[6] == "by the way"
    assert lines[-2:] == ["w", "amiss"]


@pytest.mark.parametrize(
    ("status", "problems", "lost", "good"),
    [
        ("succeeded", [], 0, True),
        ("failed", [], 0, False),
        ("succeeded", ["a slot is taken"], 0, False),
        ("succeeded", [], 1, False),
    ],
)
def test_a_run_is_good_only_if_all_is(
    status: str,
    problems: list[str],
    lost: int,
    good: bool,  # noqa: FBT001 - of the cases above
) -> None:
    report = CrashReport(problems=problems, status=status, outcome=Verdict(lost=lost))
    assert report.is_good == good


def test_a_blow_is_reported_and_said() -> None:
    said: list[str] = []
    run = _run(_Signs(), say=said.append)

    assert run.strike(Blow("nobody", "recovery"))
    assert run.strike(Blow("worker", "recovery"))

    (struck,) = run.report.struck
    assert (struck.kind, struck.phase, struck.recovered_s) == ("worker", "recovery", None)
    assert said == [f"   1 {struck.at_s:7.2f} s: worker (recovery)"]


# -- striking ------------------------------------------------------------------------------------


def test_a_plan_is_followed_as_often_as_is_asked() -> None:
    """Blows that hit nobody do not count; who strikes into a recovery does not measure it."""

    def plan() -> Iterator[Blow]:
        while True:
            for kind in ("worker", "master", "nobody"):
                yield Blow(kind, "recovery" if kind == "master" else "running")

    run = _run(_Signs())
    run.strike_all(plan(), times=3)

    struck = run.report.struck
    assert [each.kind for each in struck] == ["worker", "master", "worker"]
    assert [each.recovered_s is None for each in struck] == [True, False, False]
    assert run.report.problems == []


def _moment(phase: Phase, before: Phase, after: Callable[[_Signs], object]) -> Phase:
    signs = _Signs(stored=1)
    run = _run(signs)
    steps = iter(("prepare", "snapshot", "commit"))

    def go_on() -> None:
        step = next(steps)
        if step == "prepare":
            signs.prepared = frozenset({"file"})
        elif step == "snapshot":
            signs.at = 2
        else:
            signs.log = frozenset({"log"})
        if step != before:
            go_on()

    run.at_look = go_on
    run.at_blow = lambda: after(signs)
    run.strike(Blow("worker", phase))
    return run.report.struck[0].phase


@pytest.mark.parametrize("phase", ["prepare", "snapshot"])
def test_the_phase_of_a_blow_is_the_one_that_files_show_after_it(phase: Phase) -> None:
    assert _moment(phase, phase, lambda _: None) == phase
    assert _moment(phase, phase, lambda signs: setattr(signs, "log", frozenset({"b"}))) == "commit"
    assert _moment(phase, phase, lambda signs: setattr(signs, "prepared", frozenset())) == "running"


# -- waiting -------------------------------------------------------------------------------------


def test_an_application_is_healthy_when_an_epoch_is_shown_that_was_not_stored() -> None:
    """Those that were stored before may be shown although nothing goes on."""
    signs = _Signs(stored=4)

    assert _run(signs).wait_healthy()
    assert signs.newest_shown() == 6


def test_an_application_that_does_not_recover_is_a_problem() -> None:
    run = _run(_Signs(shown=4, grows=False), healthy_s=0.0)

    assert not run.wait_healthy()

    assert run.report.problems == ["no epoch after 4 for 0 s"]


def test_what_is_waited_for_comes_or_does_not() -> None:
    tended: list[Any] = []
    run = _run(_Signs())
    run.at_look = lambda: tended.append(1)

    assert run.poll(lambda: bool(tended), 60.0)
    assert not run.poll(lambda: False, 0.0)

    run.pause(0.0)
    assert len(tended) == 3


def test_the_end_of_the_stream_is_waited_for(tmp_path: Path) -> None:
    run = _run(_Signs(shown=8), None, "active", None, "succeeded", results=tmp_path)

    run.end_stream(150)

    report = run.report
    assert (tmp_path / "end").read_text() == "250"
    assert (report.end, report.epochs) == (250, 9)
    assert (report.status, report.restarts) == ("succeeded", 3)


def test_the_end_of_the_stream_is_behind_what_the_sources_have_given(tmp_path: Path) -> None:
    partitions = [numbered.numbers(partition, tmp_path) for partition in range(2)]
    for _ in range(3_210):
        next(partitions[0])

    end = numbered.end_after(tmp_path, 100)
    numbered.set_end(tmp_path, end)

    assert 3_210 < end <= 3_210 + 100 + 100
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

    run = _run(_Signs(shown=8), "succeeded", results=tmp_path)
    run.end_stream(0)

    assert run.report.problems == ["the end of the stream, 200, was told too late"]
