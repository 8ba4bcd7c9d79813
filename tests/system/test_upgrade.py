"""Processes of two versions in one cluster, as in an upgrade that goes from one to the next."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gearpy import __version__
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, ListWorkers
from tests.bench.process_cluster import ProcessCluster
from tests.bench.upgrade import Gearpy, measure_upgrade
from tests.eventually import eventually
from tests.system.older_process import environment

_PATIENCE_S = 240.0
_PROGRAM = """\
import gearpy as gp

def main(args):
    app = gp.StreamApp("sums", parallelism=2)
    numbers = app.read(gp.collection(range(200)))
    sums = numbers.key_by(lambda n: n % 10).reduce(lambda a, b: a + b)
    sums.map(lambda pair: {"key": pair[0], "sum": pair[1]}).write(gp.jsonl_folder(args[0]))
    return app
"""


@pytest.mark.parametrize(
    ("roles", "versions"),
    [
        pytest.param(("master",), ["", ""], marks=pytest.mark.long),  # It tells of none.
        (("worker", "child"), ["", __version__]),
        # Its files were replaced below it.
        pytest.param(("worker",), ["", __version__], marks=pytest.mark.long),
        pytest.param(("child",), [__version__, __version__], marks=pytest.mark.long),
    ],
    ids=lambda each: "-".join(each) or "none",
)
def test_processes_of_two_versions_are_one_cluster(
    tmp_path: Path, roles: Sequence[str], versions: Sequence[str]
) -> None:
    """The master is older, or one of two workers, or what that one starts; clients are newer."""
    cluster = ProcessCluster(tmp_path, workers=2, slots=2)
    program = tmp_path / "sums.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    older = cluster.master if "master" in roles else cluster.workers[0]
    older.run_as(sys.executable, environment(tmp_path / "older", roles))
    with cluster:
        number: AppId = cluster.submit(program, str(tmp_path / "out"), executors=3)

        def has_succeeded() -> bool:
            found = cluster.client.ask(GetApplication(app_id=number))
            assert found.status in {"pending", "active", "succeeded"}, found
            return found.status == "succeeded"

        eventually(has_succeeded, within_s=_PATIENCE_S)
        assert (
            sorted(each.version for each in cluster.client.ask(ListWorkers()).workers) == versions
        )

    texts = [each.read_text(encoding="utf-8") for each in (tmp_path / "out").glob("*.jsonl")]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    assert len(found) == 200  # A sum so far for each number.
    sums = {key: max(each["sum"] for each in found if each["key"] == key) for key in range(10)}
    assert sums == {key: sum(range(key, 200, 10)) for key in range(10)}


@pytest.mark.long
def test_a_cluster_is_upgraded_and_downgraded_process_by_process(tmp_path: Path) -> None:
    older = Gearpy("older", sys.executable, environment(tmp_path / "older"))
    newer = Gearpy("newer", sys.executable)
    (tmp_path / "cluster").mkdir()

    result = measure_upgrade(tmp_path / "cluster", [older, newer, older], rate=500)

    assert result.is_good, "\n".join(result.lines())
    assert result.replaced[4].versions == (__version__, __version__)
    assert result.replaced[-1].versions == ("", "")
