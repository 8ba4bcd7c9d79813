"""A cluster of daemons as its user meets it: programs, commands, failures, ends."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.exits import NO_CLUSTER, SUCCESS, WRONG_USE
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from tests.eventually import eventually
from tests.system.cluster_build import GEAR, Scene, descendants, ended, environment, gear, is_gone

NO_RETRIES: Final = ("--set", "application.total-retries=0")
_SHARED: Final = """\
import gearpy as gp

class Change(gp.Task):
    def on_next(self, message):
        message.value["x"] = -1
        return [message]

def main(args):
    app = gp.StreamApp("shared")
    rows = app.read(gp.generate(lambda: ({"x": i} for i in range(60)), limit=60))
    keyed = rows.key_by(lambda row: row["x"] % 6, parallelism=3)
    keyed.process(Change).write(gp.jsonl_folder(args[0] + "/changed"))
    again = rows.key_by(lambda row: row["x"] % 6, parallelism=3)
    again.map_with_state(lambda _, row: (1, row["x"])).write(gp.jsonl_folder(args[0] + "/kept"))
    return app
"""
_NAMED: Final = """\
import gearpy as gp

def main(args):
    app = gp.StreamApp("named")
    rows = app.read(gp.collection([{"x": i, "k": i % 6} for i in range(60)], partitions=3))
    keyed = rows.map(dict).key_by("k", parallelism=3)
    names = gp.csv(args[0], schema={"id": int, "name": str})
    named = keyed.join_table(names, on="id", combine="merge")
    named.write(gp.jsonl_folder(args[1] + "/rows"))
    return app
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return a cluster with two workers, for tests that leave it as it was."""
    made = Scene(tmp_path_factory.mktemp("scene"))
    with made.cluster:
        yield made


# -- programs ------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_programs_of_every_form_run_and_leave_nothing(scene: Scene) -> None:
    """A file with the module beside it, a folder, a zip, a wheel; in two processes if wanted."""
    programs = {
        "side/main_s.py": ["--executors", "2"],
        "shop": ["--namePrefix", "folder-"],
        "shop.zip": ["--name", "zipped", "--set", "streaming.batch-max-records=7"],
        "shop-1.0-py3-none-any.whl": [],
    }

    numbers = {
        scene.submit(program, *options, "--", str(scene.folder / f"out-{n}")): n
        for n, (program, options) in enumerate(programs.items())
    }
    ends = [scene.ends(number) for number in numbers]

    assert [each["status"] for each in ends] == ["succeeded"] * 4
    assert [each["name"] for each in ends] == ["side", "folder-shop", "zipped", "shop"]
    written = [(scene.folder / f"out-{n}").read_text() for n in numbers.values()]
    assert written == ["10\n20\n30\n"] * 4
    eventually(scene.has_nothing_left)


def test_branches_of_one_stream_do_not_see_each_other(scene: Scene) -> None:
    """Some records travel between processes and some do not; one branch changes what it gets."""
    (scene.folder / "shared.py").write_text(_SHARED)
    out = scene.folder / "shared"
    out.mkdir()

    end = scene.ends(scene.submit("shared.py", "--executors", "2", "--", str(out)))

    assert end["status"] == "succeeded"
    assert sorted(_lines(out / "kept")) == list(range(60))


def test_a_table_is_joined_in_each_process(scene: Scene) -> None:
    (scene.folder / "named.py").write_text(_NAMED)
    (scene.folder / "names.csv").write_text("id,name\n" + "".join(f"{n},n{n}\n" for n in range(6)))
    out = scene.folder / "named"
    out.mkdir()
    names = str(scene.folder / "names.csv")

    end = scene.ends(scene.submit("named.py", "--executors", "2", "--", names, str(out)))

    assert end["status"] == "succeeded"
    found = sorted(_lines(out / "rows"), key=lambda row: int(row["x"]))
    assert found == [{"x": n, "k": n % 6, "name": f"n{n % 6}"} for n in range(60)]


def _lines(folder: Path) -> list[Any]:
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def test_a_relative_path_is_hinted_at(scene: Scene) -> None:
    """It means another folder there; the output is not lost all the same."""
    said = scene.gear("app", "submit", "shop", "--name", "relative", "--", "out.txt")
    number = int(said.split()[1])
    last = scene.ends(number)
    log = eventually(
        lambda: (
            (text := scene.gear("app", "logs", str(number), "--executor", "0"))
            and "left in the working folder" in text
            and text
        )
    )
    folder = Path(log.partition("left in the working folder ")[2].partition(",")[0])

    assert "hint: a cluster may run programs in another folder: where out.txt is a file" in said
    assert last["status"] == "succeeded"
    assert (folder / "out.txt").read_text() == "10\n20\n30\n"
    (folder / "out.txt").unlink()
    folder.rmdir()


def test_a_program_that_builds_another_graph_elsewhere_is_told_the_difference(scene: Scene) -> None:
    """Tasks of two graphs cannot work together; guessing which one was meant is no help."""
    last = scene.ends(scene.submit("dies.py", "--", "differs"))

    assert last["status"] == "failed"
    cause = last["cause"]["cause"]
    assert cause.startswith("executor 0 built another graph than the app master")
    assert "map(repr)" in cause
    assert "map(str)" in cause
    assert "the program must build the same graph in every process" in cause


# -- commands ------------------------------------------------------------------------------------


def test_every_command_tells_of_a_living_application(own: Scene) -> None:
    out = own.folder / "out"
    for mark in (".raised", ".good"):
        Path(f"{out}{mark}").touch()
    own.submit("count.py", "--", "living", str(out))
    eventually(lambda: own.summary(1)["progress"]["epoch"])

    assert_that_all_commands_tell(own)
    own.cluster.master.kill()
    before = len(out.read_text())
    for refused in (["info"], ["app", "logs", "1"], ["app", "submit", "poison.py"]):
        assert own.gear(*refused, code=NO_CLUSTER).startswith("error: no cluster at 127.0.0.1:")
    eventually(lambda: len(out.read_text()) > before)
    own.cluster.master.start()
    own.cluster.master.wait_ready()
    eventually(lambda: own.detail(1) and own.ask("worker", "list")["workers"])
    assert_that_all_commands_tell(own, "--json")

    again = json.loads(own.gear("app", "restart", "living", "--json"))
    killed = own.gear("app", "kill", "living")
    assert again == {"app_id": 2, "name": "living", "restarted": 1}
    assert killed == "application 2 (living) terminated\n"
    assert [own.summary(number)["status"] for number in (1, 2)] == ["terminated"] * 2
    assert "is already terminated" in own.gear("app", "kill", "2", code=WRONG_USE)
    assert "is terminated: it must run" in own.gear("app", "restart-tasks", "2", code=WRONG_USE)
    assert "no application has id 9" in own.gear("why", "9", code=WRONG_USE)
    numbers = eventually(lambda: (lines := out.read_text().split()) and lines)
    assert numbers == [str(n) for n in range(len(numbers))]


def assert_that_all_commands_tell(scene: Scene, *options: str) -> None:
    commands = {
        ("app", "list"): "living",
        ("info",): "workers",
        ("info", "1"): "text_file(",
        ("app", "describe", "living"): "executors",
        ("app", "restart-tasks", "1"): "epoch",
        ("why", "living"): "(living)" if not options else '"name": "living"',
        ("worker", "list"): "slots",
        ("quarantine", "list", "1"): "record",
        ("app", "logs", "living"): "app1-appmaster-1 runs as process",
        ("app", "logs", "living", "--executor", "0"): "app1-executor0-1 runs as process",
    }
    for command, text in commands.items():
        answer = scene.gear(*command, *options)
        assert text in answer, command
        assert not options or isinstance(json.loads(answer), dict)


# -- failures ------------------------------------------------------------------------------------


def test_what_fails_once_restarts_and_what_is_put_aside_comes_back(scene: Scene) -> None:
    out = scene.folder / "counted"
    quarantine = ("--set", "application.on-error=quarantine")
    number = scene.submit(*quarantine, "count.py", "--", "counted", str(out))
    app = str(number)
    eventually(lambda: scene.summary(number)["progress"]["records_out"] > 200)
    shown = scene.gear("quarantine", "show", app, "1")
    (first,) = scene.ask("quarantine", "show", app, "1")["records"]

    out.with_name("counted.good").touch()
    eventually(lambda: put_aside(scene, app) and scene.gear("quarantine", "replay", app))
    eventually(lambda: not put_aside(scene, app) and "\n7\n" in out.read_text())
    out.with_name("counted.stop").touch()
    last = scene.ends(number)

    assert "ValueError: no price for 7" in shown
    assert 'raise ValueError(f"no price for {n}")' in shown
    assert (first["error"]["record"], first["number"]) == ("7", 1)
    assert last["status"] == "succeeded"
    assert last["progress"]["quarantined_records"] >= 3
    numbers = sorted(map(int, out.read_text().split()))
    assert numbers == list(range(len(numbers)))
    assert "must run for that" in scene.gear("app", "restart-tasks", app, code=WRONG_USE)


@pytest.mark.long
def test_a_record_that_was_given_back_outlives_its_app_master(own: Scene) -> None:
    """No epoch has it yet: it stays in the list, is given back again, and counts once."""
    out = own.folder / "back"
    settings = ("application.on-error=quarantine", "checkpoint.interval-ms=600000")
    sets = [part for each in settings for part in ("--set", each)]
    out.with_name("back.raised").touch()  # It does not fail otherwise.
    number = own.submit(*sets, "count.py", "--", "back", str(out))
    app = str(number)
    eventually(lambda: put_aside(own, app))
    out.with_name("back.good").touch()
    own.gear("app", "savepoint", app, "before")  # What was put aside is not read again.
    pid = eventually(lambda: own.cluster.app_master_pid(AppId(number)))

    own.gear("quarantine", "replay", app)
    os.kill(pid, signal.SIGKILL)

    eventually(lambda: is_gone(pid))
    assert put_aside(own, app)

    def given_back() -> bool:
        with connected(own.cluster.config) as client, suppress(GearpyError):
            return bool(client.replay_quarantined(AppId(number)))
        return False

    eventually(given_back, every_s=0.2)
    out.with_name("back.stop").touch()
    assert own.ends(number)["status"] == "succeeded"
    assert not put_aside(own, app)
    numbers = sorted(map(int, out.read_text().split()))
    assert numbers == list(range(len(numbers)))


def put_aside(scene: Scene, app: str) -> list[Any]:
    records: list[Any] = scene.ask("quarantine", "list", app)["records"]
    return records


def test_an_exception_restarts_the_tasks_and_no_line_is_written_twice(scene: Scene) -> None:
    out = scene.folder / "once"
    out.with_name("once.good").touch()
    number = scene.submit("count.py", "--", "once", str(out))
    detail = eventually(
        lambda: (now := scene.detail(number)) is not None and now["failures"] and now
    )
    eventually(lambda: len(out.read_text().split()) > 60)
    out.with_name("once.stop").touch()
    last = scene.ends(number)

    (failure,) = detail["failures"]
    assert failure["error"]["cause"] == "ValueError: only once"
    assert failure["error"]["source"].endswith("count.py:10")
    assert (last["status"], last["progress"]["restarts"]) == ("succeeded", 1)
    numbers = out.read_text().split()
    assert numbers == [str(n) for n in range(len(numbers))]


def test_a_record_that_always_fails_ends_its_application_or_is_skipped(scene: Scene) -> None:
    """Another restart would not help; who wants to lose the record can say so."""
    failing = scene.submit("poison.py")
    skipping = scene.submit("poison.py", "--name", "skipping", "--set", "application.on-error=skip")
    failed, skipped = scene.ends(failing), scene.ends(skipping)
    described = scene.gear("app", "describe", str(failing))

    assert (failed["status"], failed["progress"]["restarts"]) == ("failed", 2)
    for part in (
        "error: ValueError: could not convert string to float: 'n/a'",
        "  in      map(price)",
        "poison.py:4",
        '            return float(order["price"])',
        "  record  {'id': 7, 'price': 'n/a'}",
    ):
        assert part in described
    assert skipped["status"] == "succeeded"
    counted = [skipped["progress"][f"{each}_records"] for each in ("skipped", "quarantined")]
    counted += [skipped["progress"]["records_in"], skipped["progress"]["records_out"]]
    assert counted == [1, 0, 10, 9]


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("exit", "executor 0 lost: exited with code 3: my last words"),
        ("crash", "executor 0 lost: killed by signal 11 (SIGSEGV)\nFatal Python error: Segm"),
        ("memory", "MemoryError"),
        ("import", "executor 0 lost: exited with code 1: dies.py:main: ModuleNotFoundError: No"),
    ],
)
def test_what_a_process_died_of_is_told(scene: Scene, what: str, cause: str) -> None:
    number = scene.submit(*NO_RETRIES, "dies.py", "--", what)
    last = scene.ends(number)

    assert last["status"] == "failed"
    assert last["cause"]["cause"].startswith(cause)
    assert "INFO gearpy" not in last["cause"]["cause"]
    assert cause.partition("\n")[0] in scene.gear("app", "describe", str(number))
    if what != "exit":
        assert "dies.py" in last["cause"]["cause"] + last["cause"]["source"]


# -- daemons -------------------------------------------------------------------------------------


def test_a_call_that_does_not_come_back_is_named_and_its_process_replaced(scene: Scene) -> None:
    """`gear why` names its step and line, and not the tasks behind it."""
    out = scene.folder / "stood"
    limit = ("--set", "executor.turn-timeout-seconds=5")
    scene.gear("why", "999", code=WRONG_USE)  # Loads what it needs, which takes time, too.
    number = scene.submit(*limit, "hangs.py", "--executors", "2", "--", str(out))

    eventually(lambda: (scene.detail(number) or {}).get("long_turns"))
    told = scene.ask("why", str(number))

    assert told["culprit"] == "0.0"
    assert told["advice"].startswith("map(stand) (task 0.0) has been in one call for ")
    assert "hangs.py:10: time.sleep(1000): " in told["advice"]
    failures = eventually(lambda: (scene.detail(number) or {}).get("failures"))
    assert failures[0]["error"]["operator"] == "map(stand)"
    assert "time.sleep(1000)" in failures[0]["error"]["traceback"]

    last = scene.ends(number)

    assert (last["status"], last["progress"]["restarts"]) == ("succeeded", 1)
    shown = [int(n) for part in out.glob("*.jsonl") for n in part.read_text().split()]
    assert sorted(shown) == list(range(100))


def test_nothing_outlives_a_worker_and_its_work_goes_on_elsewhere(own: Scene) -> None:
    """Killed or drained; not even what an operator has started."""
    number = own.submit("dies.py", "--", "child")
    log = own.folder / "cluster" / "logs" / f"app-{number}" / "executor-0-launch-1.log"
    eventually(lambda: log.exists() and "started" in log.read_text())
    (worker,) = own.cluster.workers
    assert worker.process is not None
    started = list(descendants(worker.process.pid))
    assert len(started) == 4  # Fork server, app master, executor, and what that has started.

    worker.kill()
    eventually(lambda: all(map(is_gone, started)))
    waiting = eventually(lambda: own.summary(number)["progress"]["stall"])
    worker.start()
    worker.wait_ready()
    eventually(lambda: own.summary(number)["status"] == "active")
    drained = worker.stop()

    assert waiting == "waits for slots: there is no worker: start one with bin/worker"
    assert drained == SUCCESS
    assert own.cluster.master.stop() == SUCCESS
    for name in ("master.out", "worker0.out"):
        (line,) = (own.folder / "cluster" / name).read_text().splitlines()
        assert " ready" in line
    logs = own.folder / "cluster" / "logs"
    assert sorted(each.name for each in logs.glob("*.log")) == [
        "audit.log",
        f"master-{own.cluster.address.rpartition(':')[2]}.log",
        "worker-0.log",
    ]


def test_a_local_cluster_of_processes_runs_what_another_shell_submits(tmp_path: Path) -> None:
    settings = {
        "transport.secret-file": str(tmp_path / "secret"),
        "log.folder": str(tmp_path / "logs"),
        "checkpoint.folder": str(tmp_path / "checkpoints"),
        "cluster.masters": "127.0.0.1:0",
    }
    example = Path(__file__).parents[2] / "examples" / "wordcount.py"
    (tmp_path / "words.txt").write_text("a b a", encoding="utf-8")
    process = subprocess.Popen(
        [*GEAR, "local", "--executors", "process", "--json", "--no-ui"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(settings),
        text=True,
    )
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        there = {**settings, "cluster.masters": address}
        printed = printed_by(there, str(example), "--", str(tmp_path / "words.txt"))
    finally:
        code, _, said = ended(process, signal.SIGINT)

    found = [line.split() for line in printed.splitlines() if " gearpy." not in line]
    assert found == [["word", "count"], ["a", "2"], ["b", "1"]]
    assert (code, "Traceback" in said) == (SUCCESS, False)


def printed_by(settings: dict[str, str], *words: str) -> str:
    """Submit a program from another shell; return what its executor has printed in the end."""
    done = subprocess.run(
        [*GEAR, "app", "submit", *words],
        env=environment(settings),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "application 1 (wordcount) submitted\n"
    eventually(lambda: " succeeded " in gear("app", "list", settings=settings))
    return gear("app", "logs", "1", "--executor", "0", settings=settings)


def test_a_cluster_with_certificates_takes_nobody_without(tmp_path: Path) -> None:
    folder = str(tmp_path / "certs")
    tls = {"transport.tls": "on", "transport.tls-folder": folder}
    made = Scene(tmp_path, workers=1, more=tls)
    made.gear("certs", "init", "--folder", folder)
    with made.cluster:
        last = made.ends(made.submit("shop", "--", str(tmp_path / "out")))
        plain = made.gear("info", "--set", "transport.tls=off", code=NO_CLUSTER)
        without = made.gear("info", "--set", "transport.tls-folder=/nowhere", code=WRONG_USE)

    assert last["status"] == "succeeded"
    assert (tmp_path / "out").read_text() == "10\n20\n30\n"
    assert "it speaks TLS, set transport.tls" in plain
    assert "make certificates with `gear certs init`" in without
    assert len(plain.splitlines()) == len(without.splitlines()) == 1
