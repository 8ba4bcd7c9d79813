"""Runs beside the program: asked, stopped, replaced, and ended with it."""

import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.errors import OperatorError, SubmitRefused
from tests.eventually import DEADLINE_S, eventually

NEVER = threading.Event()


def endless(results: list[int], name: str = "endless") -> gp.StreamApp:
    app = gp.StreamApp(name)
    app.read(gp.generate(itertools.count, rate=2000)).write(gp.to_list(results))
    return app


def test_a_run_goes_on_beside_the_program_until_it_is_stopped() -> None:
    results = list[int]()
    run = gp.start(endless(results))
    eventually(lambda: results)

    eventually(lambda: run.wait(0.01).status == "active")
    assert repr(run).startswith("<run 'endless' active: ")
    summary = run.stop()

    assert summary.progress.drained
    assert results == [*range(summary.progress.records_in)]
    assert run.stop() == run.wait() == run.summary == summary


def test_a_stop_that_takes_long_says_what_it_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, may_end = threading.Event(), threading.Event()

    def step(number: int) -> int:
        running.set()
        may_end.wait(DEADLINE_S)
        return number

    app, results, said = gp.StreamApp("slow"), list[int](), list[str]()
    app.read(gp.collection([1])).map(step).write(gp.to_list(results))
    run = gp.start(app, checkpoint=tmp_path / "run")
    running.wait(DEADLINE_S)
    run.stop(0.01)

    def is_told() -> bool:
        said.append(capsys.readouterr().err)
        return "stopping for" in "".join(said)

    eventually(is_told)
    may_end.set()
    run.wait(DEADLINE_S)
    assert "after 60 s (application.drain-timeout-seconds) it ends as failed; " in "".join(said)
    assert "run.kill() ends it at once, and the next run goes on from the newest" in "".join(said)
    assert results == [1]


def test_a_run_is_changed_while_it_goes_on() -> None:
    results = list[tuple[int, int]]()
    app = gp.StreamApp("scaled")
    numbers = app.read(gp.generate(itertools.count, rate=2000)).key_by(lambda n: n % 3)
    numbers.enumerate(name="number").write(gp.to_list(results))
    with gp.start(app) as run:
        eventually(lambda: results)
        run.running.scale(number=2).wait(DEADLINE_S)
        assert [each.change for each in run.running.history()] == ["submitted", "scale number=2"]
        with pytest.raises(AttributeError, match=r"a run has no 'scale': write run.running.scale"):
            run.scale(number=3)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=r"a run has no 'stpo'$"):
            run.stpo()  # type: ignore[attr-defined]
        count = run.stop().progress.records_in

    assert sorted(results, key=lambda pair: pair[1]) == [(n // 3, n) for n in range(count)]


def test_a_run_ends_by_itself_when_its_input_does() -> None:
    results = list[int]()
    app = gp.StreamApp("bounded")
    app.read(gp.collection([1, 2])).write(gp.to_list(results))

    run = gp.start(app)

    assert run.wait(DEADLINE_S).status == "succeeded"
    assert run.summary.progress.records_in == 2
    assert [each.records_in for each in run.metrics().processors] == [2]
    assert results == [1, 2]


def test_a_run_tells_how_it_is_while_it_lasts() -> None:
    results = list[int]()
    with gp.start(endless(results)) as run:
        eventually(lambda: any(each.records_in for each in run.metrics().processors))

    (processor,) = run.metrics().processors
    assert processor.records_in
    assert processor.name == "generate(count) > to_list"
    assert run.metrics().status == "terminated"
    assert "it was drained" in run.metrics().headline.text
    assert all(each in run._repr_html_() for each in ("endless", "<svg", "drained"))


def test_functions_of_a_stream_have_metrics() -> None:
    """Those of a coroutine, too; a report a second has them."""
    seen, fetched = gp.counter("seen"), gp.histogram("fetched")

    def see(number: int) -> int:
        seen.add()
        return number

    async def fetch(number: int) -> int:
        fetched.observe(number)
        return number

    app = gp.StreamApp("counted")
    numbers = app.read(gp.generate(itertools.count, rate=500)).map(see)
    numbers.map_async(fetch, timeout="5s").write(gp.to_list([]))

    with gp.start(app) as run:

        def found() -> list[tuple[str, bool]]:
            told = [each for step in run.metrics().processors for each in step.metrics]
            return [(each.name, each.value > 0) for each in told]

        eventually(lambda: found() == [("fetched", True), ("seen", True)])


def test_a_second_start_replaces_the_run_of_that_name(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = list[int](), list[int](), list[int]()
    other = gp.start(endless(third, "other"))
    before = gp.start(endless(first))
    eventually(lambda: first)

    now = gp.start(endless(second))
    eventually(lambda: second)

    assert before.summary.progress.drained
    eventually(lambda: other.summary.status == "active")
    assert "endless was started before: that run is stopped first" in capsys.readouterr().err
    now.kill()
    other.kill()
    assert now.summary.status == "terminated"
    assert not now.summary.progress.drained


def test_a_failure_is_told_by_the_run_and_raised_where_it_is_waited_for() -> None:
    app = gp.StreamApp("fails")
    app.read(gp.collection([1, 0])).map(lambda n: 1 // n).write(gp.to_list([]))
    run = gp.start(app)
    eventually(lambda: run.summary.status == "failed")

    assert "ZeroDivisionError" in repr(run)
    for wait in (run.wait, run.stop):
        with pytest.raises(OperatorError, match="ZeroDivisionError") as caught:
            wait()
        assert len(caught.traceback) == 2


def test_a_context_that_fails_kills_its_run() -> None:
    with pytest.raises(KeyError), gp.start(endless([])) as run:
        raise KeyError

    assert run.summary.status == "terminated"


def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    def count(results: list[int]) -> gp.StreamApp:
        app = gp.StreamApp("counts")
        numbers = app.read(gp.generate(lambda: iter(range(2000)), rate=2000))
        numbers.write(gp.to_list(results))
        return app

    first, second = list[int](), list[int]()
    run = gp.start(count(first), checkpoint=tmp_path / "run")
    eventually(lambda: first)
    run.stop()
    resumed = gp.start(count(second), checkpoint=tmp_path / "run")
    assert resumed.wait(DEADLINE_S).status == "succeeded"
    again = gp.start(count(second), checkpoint=tmp_path / "run")

    assert [*first, *second] == [*range(2000)]
    assert again.summary.status == "succeeded"
    with pytest.raises(SubmitRefused, match="nothing was started"):
        _ = again.client


PROGRAM = """
import itertools
import sys
import threading
import time
import gearpy as gp
from gearpy.cluster.embedded import background

entered = threading.Event()

def works(number):
    background._AT_EXIT_S = 60  # A busy machine may need that.
    entered.set()
    return number

def hangs(number):
    entered.set()
    time.sleep(600)

app = gp.StreamApp("left")
numbers = app.read(gp.generate(itertools.count, rate=2000))
numbers.map({step}).write(gp.jsonl_folder(sys.argv[1]))
run = gp.start(app)
entered.wait()
print("over", flush=True)
"""


@pytest.mark.parametrize(
    ("step", "said"), [("works", ""), ("hangs", "did not end within 3 s")], ids=["works", "hangs"]
)
def test_a_program_that_ends_ends_its_runs(tmp_path: Path, step: str, said: str) -> None:
    """Drained where that is possible; and within seconds."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(step=step), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr
    assert "the program ends, so it stops left" in done.stderr
    assert said in done.stderr
    if not said:
        files = (tmp_path / "out").glob("*.jsonl")
        lines = [line for file in files for line in file.read_text().splitlines()]
        assert sorted(map(int, lines)) == [*range(len(lines))]
        assert lines


def test_state_of_now_has_all_that_was_read_before() -> None:
    app = gp.StreamApp("counted")
    seen = list[tuple[int, int]]()
    numbers = app.read(gp.generate(itertools.count, rate=2000))
    numbers.key_by(lambda n: n % 5).count().write(gp.to_list(seen))
    with gp.start(app) as run:
        eventually(lambda: seen)
        before = run.summary.progress.records_in
        table = run.state("count", at="now")

    counts = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert sum(counts.values()) >= before
    assert counts == {key: len(range(key, sum(counts.values()), 5)) for key in range(5)}
