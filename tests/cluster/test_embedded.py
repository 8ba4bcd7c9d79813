"""Runs in the process that started them: what they show, how they are stopped, and resumed."""

import asyncio
import itertools
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cluster.embedded.run import EMBEDDED, run_until
from gearpy.cluster.embedded.run_folder import RunFolder, run_folder_of
from gearpy.cluster.embedded.signals import StopSignals
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.summaries import ApplicationSummary

QUICK: Final = {"checkpoint.interval-ms": "50"}
OnProgress = Callable[[ApplicationSummary], None]


def a_config(**more: str) -> Config:
    overrides = {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}
    return load(env={}, overrides={**QUICK, **overrides}, defaults=EMBEDDED)


def endless(out: Path, *, rate: float = 2000) -> gp.StreamApp:
    """Return an application that numbers records for ever, and sums them up to each."""
    app = gp.StreamApp("endless")
    numbers = app.read(gp.generate(itertools.count, rate=rate))
    sums = numbers.key_by(lambda _: "all").map_with_state(_added, initial=0)
    sums.write(gp.jsonl_folder(out))
    return app


def _added(total: int, number: int) -> tuple[int, list[int]]:
    return total + number, [number, total + number]


def shown(out: Path) -> list[Any]:
    lines = (line for file in out.glob("*.jsonl") for line in file.read_text().splitlines())
    return sorted(json.loads(line) for line in lines)


def sums_up_to(count: int) -> list[list[int]]:
    """Return what `endless` has shown after so many records, each once."""
    return [[number, number * (number + 1) // 2] for number in range(count)]


def after(records: int, *numbers: int) -> OnProgress:
    """Return what sends this process signals, one at each look, after so many records."""
    left = list(numbers)

    def look(summary: ApplicationSummary) -> None:
        if summary.progress.records_in >= records and left:
            os.kill(os.getpid(), left.pop(0))

    return look


def stopped(app: gp.StreamApp, records: int, **options: Any) -> ApplicationSummary:
    """Run an application; drain it after so many records."""
    stop = StopSignals()

    def look(summary: ApplicationSummary) -> None:
        if summary.progress.records_in >= records and stop.number is None:
            stop.ask(signal.SIGTERM)

    return run_until(
        app,
        stop,
        **{"executors": 1, "config": a_config(), "say": print, "on_progress": look, **options},
    )


# -- stopped -------------------------------------------------------------------------------


def test_what_people_see_of_a_run_is_one_line() -> None:
    app, results = gp.StreamApp("seen"), list[int]()
    app.read(gp.collection([1, 2])).filter(lambda n: n > 1).write(gp.to_list(results))

    assert repr(gp.run(app)) == "<'seen' succeeded: 2 records in, 1 out, 0 late>"


def test_a_drained_run_shows_each_record_that_it_has_counted(tmp_path: Path) -> None:
    summary = stopped(endless(tmp_path / "out"), 500)

    assert summary.status == "terminated"
    assert summary.progress.drained
    assert summary.progress.records_in >= 500
    assert shown(tmp_path / "out") == sums_up_to(summary.progress.records_in)
    assert not [*(tmp_path / "out" / "_pending").iterdir()]


@pytest.mark.parametrize("tasks", [1, 3])
def test_what_is_in_flight_lands_before_the_end(tmp_path: Path, tasks: int) -> None:
    async def slow(number: int) -> int:
        await asyncio.sleep(0.3)
        return number

    app = gp.StreamApp("calls", parallelism=tasks)
    numbers = app.read(gp.generate(itertools.count, rate=200))
    numbers.map_async(slow).write(gp.jsonl_folder(tmp_path / "out"))
    summary = stopped(app, 50)

    assert summary.progress.drained
    assert summary.progress.records_in >= 50
    assert shown(tmp_path / "out") == [*range(summary.progress.records_in)]


def test_sigterm_ends_the_program_well_when_all_is_shown(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        gp.run(endless(tmp_path / "out"), config=a_config(), on_progress=after(500, signal.SIGTERM))

    assert caught.value.code == 0
    assert shown(tmp_path / "out") == sums_up_to(len(shown(tmp_path / "out")))
    assert len(shown(tmp_path / "out")) >= 250


def test_ctrl_c_shows_all_and_then_interrupts_the_program(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        gp.run(endless(tmp_path / "out"), config=a_config(), on_progress=after(500, signal.SIGINT))

    assert len(shown(tmp_path / "out")) >= 250


def test_the_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    """An operator that hangs would never let a drain end."""
    app, hangs = gp.StreamApp("hangs"), _Hangs()
    app.read(gp.generate(itertools.count, rate=2000)).map(hangs).write(gp.to_list([]))

    with pytest.raises(KeyboardInterrupt):
        gp.run(app, config=a_config(), on_progress=after(1, *[signal.SIGINT] * 100))

    hangs.let_go = True


def test_a_drain_that_takes_too_long_fails_with_the_step_that_it_waits_for() -> None:
    app, hangs = gp.StreamApp("hangs"), _Hangs()
    app.read(gp.generate(itertools.count, rate=2000)).map(hangs).write(gp.to_list([]))

    with pytest.raises(gp.GearpyError, match=r"did not end within 1 s: it waits for .*_Hangs"):
        stopped(app, 1, config=a_config(application__drain_timeout_seconds="1"))

    hangs.let_go = True


def test_a_drain_that_takes_its_time_says_so_until_it_ends() -> None:
    app, hangs, said = gp.StreamApp("hangs"), _Hangs(), list[str]()
    app.read(gp.generate(itertools.count, rate=2000)).map(hangs).write(gp.to_list([]))

    def say(line: str) -> None:
        said.append(line)
        hangs.let_go = "application.drain-timeout-seconds" in line

    summary = stopped(app, 1, say=say)

    assert summary.progress.drained
    assert said[1].startswith("stopping: nothing more is read")
    assert "after 60 s (application.drain-timeout-seconds) it ends as failed" in said[2]
    assert said[2].endswith("; Ctrl-C once more ends it at once")


class _Hangs:
    let_go = False

    def __call__(self, number: int) -> int:
        while number == 100 and not self.let_go:
            signal.sigtimedwait([], 0.05)
        return number


def test_a_signal_that_comes_twice_at_once_is_one() -> None:
    """`timeout -s INT` sends it to the process, and to the group that it is in."""
    now_s, second = [10.0], list[int]()
    stop = StopSignals(on_second=second.append, clock_s=lambda: now_s[0])

    for at_s in (10.0, 10.4, 10.5):
        now_s[0] = at_s
        stop.ask(signal.SIGINT)

    assert (stop.number, second) == (signal.SIGINT, [signal.SIGINT])


def test_programs_keep_their_own_handlers() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
        assert (came, stop.number) == ([signal.SIGTERM], None)
    finally:
        signal.signal(signal.SIGTERM, before)


# -- settings ------------------------------------------------------------------------------


@pytest.mark.parametrize(("retries", "calls"), [(None, 1), ("2", 3)])
def test_restarts_are_those_that_are_set_and_none_by_default(
    retries: str | None, calls: int
) -> None:
    """The first failure of a program is shown at once, unless somebody wants another try."""
    failed: list[int] = []

    def fail(number: int) -> int:
        failed.append(number)
        raise ValueError(number)

    app = gp.StreamApp("fails")
    app.read(gp.collection([1])).map(fail).write(gp.to_list([]))
    more = {} if retries is None else {"application__total_retries": retries}

    with pytest.raises(OperatorError):
        gp.run(app, config=a_config(**more))

    assert len(failed) == calls


@pytest.mark.parametrize(
    ("processes", "executors", "told"),
    [
        (0, 1, 'processes is 0: give a whole number from 1, or "auto"'),
        ("all", 1, "processes is 'all': give a whole number"),
        (2, 3, "executors is 3 and processes 2: give one of them"),
    ],
)
def test_a_number_of_processes_that_cannot_be_is_refused(
    processes: Any, executors: int, told: str
) -> None:
    app = gp.StreamApp("refused")
    app.read(gp.collection([1])).write(gp.to_list([]))

    with pytest.raises(ConfigError, match=told):
        gp.run(app, processes=processes, executors=executors)
    with pytest.raises(ConfigError, match=told):
        gp.start(app, processes=processes, executors=executors)


# -- resumed -------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was_drained(tmp_path: Path) -> None:
    """Its source, its state and its sink, as if it had never stopped."""
    for rounds in range(1, 4):
        stopped(endless(tmp_path / "out"), 500 * rounds, checkpoint=tmp_path / "run")

    assert shown(tmp_path / "out") == sums_up_to(len(shown(tmp_path / "out")))
    assert len(shown(tmp_path / "out")) >= 750


def test_a_run_that_failed_goes_on_with_the_program_that_was_mended(tmp_path: Path) -> None:
    is_mended, out = False, tmp_path / "out"

    def check(number: int) -> int:
        if not is_mended and number % 100 == 99 and shown(out):
            raise ValueError(number)
        return number

    def an_app() -> gp.StreamApp:
        app = gp.StreamApp("numbers")
        rate = None if is_mended else 1000
        numbers = app.read(gp.generate(lambda: iter(range(20_000)), rate=rate))
        numbers.map(check).write(gp.jsonl_folder(out))
        return app

    with pytest.raises(OperatorError):
        gp.run(an_app(), config=a_config(), checkpoint=tmp_path / "run")
    before = shown(out)
    is_mended = True
    gp.run(an_app(), config=a_config(), checkpoint=tmp_path / "run")

    assert 0 < len(before) < 20_000
    assert shown(out) == [*range(20_000)]


def test_a_run_that_has_finished_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would show everything twice; a supervisor that starts it once more does no harm."""

    def a_run() -> ApplicationSummary:
        app = gp.StreamApp("short")
        app.read(gp.collection([1, 2])).write(gp.jsonl_folder(tmp_path / "out"))
        return gp.run(app, config=a_config(), checkpoint=tmp_path / "run")

    statuses = [a_run().status for _ in range(3)]

    assert statuses == ["succeeded"] * 3
    assert shown(tmp_path / "out") == [1, 2]
    assert "short has finished, there is nothing to resume" in capsys.readouterr().err


def test_another_program_goes_on_with_what_it_has_a_place_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def counting(*, keyed: bool, name: str = "endless", extra: bool = False) -> gp.StreamApp:
        app = gp.StreamApp(name)
        numbers = app.read(gp.generate(itertools.count, rate=500), name="numbers")
        numbers = numbers.filter(lambda _: True) if extra else numbers
        counts = numbers.key_by(lambda n: n % 3).count(name="count") if keyed else numbers
        counts.write(gp.jsonl_folder(tmp_path / "out"), name="out")
        return app

    stopped(counting(keyed=True), 100, checkpoint=tmp_path / "run")
    capsys.readouterr()
    with pytest.raises(
        ConfigError,
        match=re.escape(
            "run has a run of another program, and this one has no place for what these steps "
            "keep: dropped count [count]: count() by a function (3 values): give steps the names "
            "that they had, leave their state behind with --allow-drop (allow_drop=True in "
            "Python), or take another name for the run"
        ),
    ):
        stopped(counting(keyed=False), 1, checkpoint=tmp_path / "run")
    stopped(counting(keyed=True, extra=True), 300, checkpoint=tmp_path / "run")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "the program is another one than that of the run so far:",
        "  kept numbers [numbers]: places in GeneratorSource",
    ]
    assert lines[2].startswith("  new filter(lambda) [filter-")
    assert lines[3:6] == [
        "  kept count [count]: count() by a function",
        "  kept out [out]: what FolderSink has written",
        "  no state is dropped",
    ]
    found = shown(tmp_path / "out")
    assert sorted(found) == sorted([n % 3, n // 3 + 1] for n in range(len(found)))

    stopped(counting(keyed=False), 400, checkpoint=tmp_path / "run", allow_drop=True)
    assert "  the state of 1 step is dropped" in capsys.readouterr().out.splitlines()
    renamed = counting(keyed=True, name="other")
    with pytest.raises(ConfigError, match="has a run of endless, not of other: take another name"):
        stopped(renamed, 1, checkpoint=tmp_path / "run")


def test_two_runs_at_a_time_are_refused(tmp_path: Path) -> None:
    app = endless(tmp_path / "out").build()

    with (
        RunFolder(tmp_path / "run", app),
        pytest.raises(ConfigError, match=f"is in use by process {os.getpid()}"),
        RunFolder(tmp_path / "run", app),
    ):
        pass


def test_a_store_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    stopped(endless(tmp_path / "out"), 100, checkpoint=tmp_path / "run")
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "unmounted")

    with pytest.raises(ConfigError, match="is it mounted"):
        stopped(endless(tmp_path / "out"), 100, checkpoint=tmp_path / "run")


@pytest.mark.parametrize(
    ("note", "told"),
    [
        (b"{", "run.json is damaged"),
        (b'{"version":9,"application":"endless","prefix":"a"}', "has version 9, this gearpy knows"),
        (None, "is not the folder of a run, it has mine.txt"),
    ],
)
def test_a_folder_that_is_none_of_a_run_is_refused(
    tmp_path: Path, note: bytes | None, told: str
) -> None:
    (tmp_path / ("mine.txt" if note is None else "run.json")).write_bytes(note or b"")

    with pytest.raises(ConfigError, match=told):
        stopped(endless(tmp_path / "out"), 1, checkpoint=tmp_path)


def test_a_store_elsewhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no folder of this machine"):
        RunFolder("s3://bucket/run", endless(Path("out")).build())


@pytest.mark.parametrize(
    ("name", "folder"), [("daily", "/runs/daily"), ("./daily", "daily"), ("/a/b", "/a/b")]
)
def test_a_name_is_below_the_folder_of_runs_and_a_path_is_a_path(name: str, folder: str) -> None:
    assert run_folder_of(name, "/runs") == Path(folder)
