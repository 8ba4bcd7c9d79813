"""A client over the network: submit, ask, stop; and what it says when that cannot be."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError, SubmitRefused
from tests.eventually import DEADLINE_S, eventually

PROGRAM = """
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp("counts")
    numbers = range(int(args[0])) if args else itertools.count()
    app.read(gp.generate(lambda: iter(numbers), rate=1000)).write(gp.to_list([]))
    return app
"""

_KEEPS = """
import itertools
import gearpy as gp

app = gp.StreamApp("kept")
numbers = app.read(gp.generate(itertools.count, rate=1000))
numbers.key_by(lambda n: n % 3).count().write(gp.to_list([]))
"""


@pytest.fixture
def cluster(configured: Callable[..., Config]) -> Iterator[RemoteCluster]:
    config = configured(cluster__masters="127.0.0.1:0", checkpoint__interval_ms=100)
    with LocalCluster(config, listen=True) as local, connect(local.address, config=config) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "counts.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def test_a_program_is_submitted_and_waited_for(cluster: RemoteCluster, program: str) -> None:
    running = cluster.submit_program(program, ["50"], name="fifty")

    assert running.wait(DEADLINE_S).status == "succeeded"
    assert cluster.running("fifty").app_id == running.app_id
    assert cluster.running(running.app_id).summary().progress.records_in == 50
    assert "<td style" in cluster._repr_html_()
    assert "fifty" in cluster._repr_html_()


def test_state_is_seen_where_its_store_is_not(cluster: RemoteCluster, tmp_path: Path) -> None:
    path = tmp_path / "kept.py"
    path.write_text(_KEEPS, encoding="utf-8")
    running = cluster.submit_program(str(path))
    eventually(lambda: running.summary().progress.epoch > 1, within_s=DEADLINE_S)

    table = running.state("count")

    assert set(table["key"].to_pylist()) == {0, 1, 2}
    assert sum(table["value"].to_pylist()) > 0
    path.write_text(_KEEPS.replace("n % 3", "n % 5"), encoding="utf-8")
    change = running.update(str(path), dry_run=True)
    assert change.plan.is_same
    assert str(change).splitlines()[-1] == "no state is dropped"
    assert [each.change for each in running.history()] == ["submitted"]
    running.shutdown()


def test_a_next_version_has_the_arguments_of_the_one_that_runs(
    cluster: RemoteCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kept.py"
    keeps = _KEEPS.replace("app = ", "def main(args):\n app = ").replace("\nnumbers", "\n numbers")
    keeps = keeps.replace('"kept"', "args[0]") + " return app\n"
    path.write_text(keeps, encoding="utf-8")
    running = cluster.submit_program(str(path), ["first"])
    eventually(lambda: running.summary().progress.epoch > 1, within_s=DEADLINE_S)

    assert running.update(str(path), dry_run=True).plan.is_same
    assert not running.update(str(path), ["second"], dry_run=True).plan.refusal
    with pytest.raises(OperatorError, match="list index out of range"):
        running.update(str(path), [], dry_run=True)
    path.write_text(_KEEPS, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"those of the program that runs, first: .*--no-args"):
        running.update(str(path), dry_run=True)
    (tmp_path / "a.jar").write_text("x")  # No arguments would make a program of it.
    for name in ("none.py", "a.jar"):
        with pytest.raises(ConfigError) as told:
            running.update(str(tmp_path / name), dry_run=True)
        assert len(told.value.mistakes) == 1
    running.shutdown()


def test_a_savepoint_that_would_end_with_the_cluster_is_refused(
    cluster: RemoteCluster, program: str
) -> None:
    running = cluster.submit_program(program)
    eventually(lambda: running.summary().progress.epoch > 0, within_s=DEADLINE_S)

    with pytest.raises(SubmitRefused, match="checkpoints are in memory here, so a savepoint"):
        running.drain(savepoint="mine")

    assert running.summary().status == "active"
    running.shutdown()


def test_an_application_is_asked_drained_and_started_again(
    cluster: RemoteCluster, program: str
) -> None:
    running = cluster.submit_program(program, config={"application.total-retries": "3"})
    eventually(lambda: running.summary().progress.records_in > 0)

    assert [each.name for each in running.describe().processors] == ["generate(<lambda>) > to_list"]
    assert [task.records_in > 0 for task in running.metrics().tasks] == [True]
    running.drain()
    assert running.wait(DEADLINE_S).progress.drained
    again = running.restart()
    eventually(lambda: again.summary().status == "active")
    again.kill()
    assert again.wait(DEADLINE_S).status == "terminated"
    with pytest.raises(SubmitRefused, match="terminated"):
        again.drain()


def test_a_mistake_shows_before_anything_is_sent(cluster: RemoteCluster, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("import gearpy as gp\nraise ValueError('no')\n", encoding="utf-8")

    with pytest.raises(OperatorError, match="no") as caught:
        cluster.submit_program(str(path))

    assert caught.value.source == f"{path}:2"
    assert cluster.applications() == ()
    with pytest.raises(ConfigError, match="missing"):
        cluster.submit_program(str(tmp_path / "missing.py"))


def test_an_address_is_one(configured: Callable[..., Config]) -> None:
    config = configured(cluster__masters="one:3000,two:3000")

    with gp.connect(config=config) as cluster:
        assert cluster.address == "one:3000,two:3000"
    with pytest.raises(ConfigError, match="nowhere"):
        gp.connect("nowhere")
