"""What a step keeps, looked at while an application runs; savepoints and drains, on daemons."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cli.terminal.connect import connected
from gearpy.ids import AppId
from tests.eventually import eventually
from tests.system.cluster_build import Scene

_KEYS: Final = 7
_PROGRAM: Final = f"""\
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp(args[0])
    numbers = app.read(gp.generate(itertools.count, rate=200))
    counts = numbers.key_by(lambda n: n % {_KEYS}, parallelism=2).map_with_state(
        lambda kept, n: (kept + 1, (n, kept + 1)), initial=0, name="counts"
    )
    counts.write(gp.jsonl_folder(args[1]))
    return app
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("scene"))
    (made.folder / "counts.py").write_text(_PROGRAM, encoding="utf-8")
    with made.cluster:
        yield made


def started(scene: Scene, name: str, *options: str, folder: str = "") -> int:
    """Submit the program; return its number when it has an epoch of its own."""
    out = str(scene.folder / (folder or name))
    app_id = scene.submit("counts.py", *options, "--", name, out)
    eventually(lambda: scene.summary(app_id)["progress"]["records_in"] > 100)
    epoch = scene.summary(app_id)["progress"]["epoch"]
    eventually(lambda: scene.summary(app_id)["progress"]["epoch"] > epoch + 1)
    return app_id


def is_prefix(counts: Mapping[Any, Any]) -> int:
    """Return of how many numbers these are the counts: all up to one, each once."""
    total: int = sum(counts.values())
    wanted = {key: len(range(key, total, _KEYS)) for key in range(_KEYS)}
    assert counts == {key: each for key, each in wanted.items() if each}
    return total


def counts_of(rows: list[dict[str, Any]]) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in rows}


def shown_in(folder: Path) -> list[int]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return sorted(json.loads(line)[0] for line in lines)


@pytest.mark.smoke
def test_state_is_looked_at_savepoints_are_made_and_gone_on_from(scene: Scene) -> None:
    """Each table is of one epoch, exactly; nothing is lost or counted twice on the way."""
    app_id = started(scene, "first")

    found = scene.ask("state", "query", "first", "counts", "select * from state")
    assert found["exact"]
    assert found["epoch"] > 0
    read = scene.summary(app_id)["progress"]["records_in"]
    fresh = scene.ask("state", "query", "first", "counts", "--now")
    assert is_prefix(counts_of(fresh["rows"])) >= read
    before = is_prefix(counts_of(found["rows"]))
    with connected(scene.cluster.config) as client:
        table = client.state("first", "counts")
        assert is_prefix(counts_of(table.to_pylist())) >= before
        assert set(table.column_names) == {"key", "value", "key_group"}
    [listed] = scene.ask("state", "list", str(app_id))["states"]
    assert (listed["name"], listed["state"], listed["cells"]) == ("counts", "kept", _KEYS)

    [going_on] = scene.ask("app", "savepoint", "first", "going-on")["epochs"].values()
    eventually(lambda: scene.summary(app_id)["progress"]["epoch"] > going_on + 3)
    at_epoch = ("state", "query", "first", "counts", "--epoch", str(going_on))
    kept = is_prefix(counts_of(scene.ask(*at_epoch)["rows"]))
    assert "version 1 runs" in scene.gear("app", "scale", "first", "counts=1")
    third = started(scene, "third", "--from-checkpoint", "going-on", "--allow-drop")
    assert min(shown_in(scene.folder / "third")) == kept
    scene.gear("app", "kill", str(third))
    scene.ask("app", "savepoint", "first", "short")
    scene.gear("savepoint", "drop", "short")
    assert scene.summary(app_id)["progress"]["restarts"] == 0

    stopped = scene.ask("app", "stop", "first", "--savepoint", "before-change")
    assert stopped["status"] == "terminated"
    assert stopped["progress"]["savepoint"] == "before-change"
    savepoints = scene.ask("savepoint", "list")["savepoints"]
    assert [each["name"] for each in savepoints] == ["going-on", "before-change"]

    folder = str(scene.folder / "cluster" / "checkpoints")
    at_end = is_prefix(counts_of(gp.stored_state(folder, str(app_id), "counts").to_pylist()))
    assert shown_in(scene.folder / "first") == [*range(at_end)]

    second = started(scene, "second", "--from-checkpoint", "before-change", folder="first")
    now = is_prefix(counts_of(scene.ask("state", "query", str(second), "counts")["rows"]))
    assert now > at_end
    scene.gear("app", "stop", str(second), "--drain")
    shown = shown_in(scene.folder / "first")
    assert shown == [*range(len(shown))]
    assert len(shown) >= now
    assert "has the savepoint before-change, going-on" in scene.gear(
        "checkpoint", "drop", str(app_id), "--apply", code=2
    )
    scene.gear("checkpoint", "drop", str(second), "--apply")
    scene.gear("savepoint", "drop", "going-on")
    scene.gear("savepoint", "drop", "before-change")


def test_a_drain_goes_on_when_the_app_master_dies(scene: Scene) -> None:
    app_id = started(scene, "drained")
    executors = scene.cluster.launched("executor")
    for pid in executors:  # So that the drain does not end before.
        os.kill(pid, signal.SIGSTOP)
    scene.gear("app", "stop", "drained", "--savepoint", "after-death", "--no-wait")
    app_master = scene.cluster.app_master_pid(AppId(app_id))
    assert app_master is not None
    os.kill(app_master, signal.SIGKILL)
    for pid in executors:
        os.kill(pid, signal.SIGCONT)

    ended = scene.ends(app_id)

    assert ended["status"] == "terminated"
    assert ended["progress"]["drained"]
    assert ended["progress"]["savepoint"] == "after-death"
    folder = str(scene.folder / "cluster" / "checkpoints")
    at_end = is_prefix(counts_of(gp.stored_state(folder, "drained", "counts").to_pylist()))
    assert shown_in(scene.folder / "drained") == [*range(at_end)]


_SHOP: Final = """\
import itertools
import gearpy as gp

def order(n):
    return {"user": n % 3, "price": "n/a" if n % 500 == 499 else str(n)}

def price(total, order):
    total = total + float(order["price"])
    return total, total

def main(args):
    app = gp.StreamApp(args[0])
    orders = app.read(gp.generate(itertools.count, rate=500)).map(order)
    by_user = orders.key_by(lambda order: order["user"])
    by_user.map_with_state(price, initial=0.0, name="totals").write(gp.jsonl_folder(args[1]))
    return app
"""


def test_a_failure_is_repeated_by_the_command_on_its_card(scene: Scene) -> None:
    """A record in quarantine, and a task that ended its application; and where nothing failed."""
    (scene.folder / "shop.py").write_text(_SHOP, encoding="utf-8")
    recorded = ("--set", "application.record-input-bytes=1000000")
    args = ("--", "shop", str(scene.folder / "shop"))
    app_id = scene.submit("shop.py", *recorded, "--set", "application.on-error=quarantine", *args)
    eventually(lambda: scene.ask("quarantine", "list", str(app_id))["records"])
    again = _command(scene.gear("quarantine", "show", str(app_id), "1"))
    assert again == ["debug", str(app_id), "--record", "1"]
    told = scene.gear(*again)
    assert "error: ValueError: could not convert string to float: 'n/a'" in told
    assert "as then: it has failed in the same way" in told
    same = scene.ask("debug", str(app_id), "1.0")
    assert same["same"]
    assert same["compared"] > 0
    assert same["outputs"] > 0
    source = scene.ask("debug", str(app_id), "0.0")
    assert source["records"] > 0
    scene.gear("app", "kill", str(app_id))

    app_id = scene.submit("shop.py", *recorded, "--set", "application.total-retries=1", *args)
    eventually(lambda: scene.summary(app_id)["status"] == "failed")
    failed = scene.ask(*_command(scene.gear("app", "describe", str(app_id))))
    assert failed["same"]
    assert failed["failed_then"] == failed["error"]["cause"]
    assert "n/a" in failed["error"]["record"]


def _command(card: str) -> list[str]:
    _, _, command = card.partition("again   gear ")
    return command.partition("\n")[0].split()
