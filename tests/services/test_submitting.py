"""Programs and graphs that are uploaded run, and say what is wrong with them."""

import io
import zipfile
from typing import Any

import httpx
import pytest

from gearpy.messages.client import GetApplication, GetSubmission
from gearpy.messages.summaries import ApplicationSummary
from tests.eventually import eventually
from tests.services.conftest import API, Served

_COUNTING = b"""
import gearpy as gp

def main(args):
    app = gp.StreamApp("counting")
    app.read(gp.collection(range(int(args[0])))).write(gp.to_list([]))
    return app
"""
_TASKS = b"""
import gearpy as gp

class Numbers(gp.Task):
    left = 3

    def produce(self):
        if not self.left:
            return gp.FINISHED
        self.left -= 1
        self.context.output(gp.Message(self.left * self.context.config["by"], 1))
        return 0

class Sink(gp.Task):
    def on_next(self, message):
        assert message.value in (0, 5, 10), message
"""


def ended(served: Served, answer: httpx.Response) -> ApplicationSummary:
    assert answer.status_code == 200, answer.text
    app_id = answer.json()["appId"]
    client = served.cluster.client
    eventually(
        lambda: client.ask(GetApplication(app_id=app_id)).status not in {"pending", "active"}
    )
    return client.ask(GetApplication(app_id=app_id))


def zipped(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.py", content)
    return made.getvalue()


def test_a_program_is_submitted_by_gearpumps_names(served: Served) -> None:
    answer = served.http.post(
        f"{API}/master/submitapp",
        files={
            "jar": ("counting.py", _COUNTING),
            "configfile": ("own.toml", b"[gearpy.application]\ntotal-retries = 0\n"),
        },
        data={"args": "'12'", "executorcount": "2", "configstring": "state.backend=disk"},
    )

    assert answer.json()["success"] is True
    summary = ended(served, answer)
    assert (summary.name, summary.status, summary.progress.records_in) == (
        "counting",
        "succeeded",
        12,
    )
    own = served.cluster.client.ask(GetSubmission(app_id=summary.app_id))
    assert own.config == {"application.total-retries": "0", "state.backend": "disk"}
    assert (own.args, own.executors) == (("12",), 2)
    config = served.get(f"appmaster/{summary.app_id}/config").json()
    assert config["gearpy"]["state"]["backend"] == "disk"


def test_an_archive_is_submitted(served: Served) -> None:
    answer = served.http.post(
        f"{API}/master/submitprogram",
        files={"file": ("shop.zip", zipped(jobs=_COUNTING, other=b"x = 1\n"))},
        data={"name": "daily", "target": "jobs:main", "args": "3"},
    )

    summary = ended(served, answer)
    assert (summary.name, summary.status, summary.progress.records_in) == ("daily", "succeeded", 3)


@pytest.mark.parametrize(
    ("file", "data", "status", "text"),
    [
        (("a.py", b"def (:\n"), {}, 400, "a.py:1: "),
        (("a.jar", b"x"), {}, 400, "a.jar is not a program: give a .py, .sql, .zip or .whl file"),
        (("../../a.sh", b"x"), {}, 400, "a.sh is not a program"),
        (("a.zip", b"x"), {}, 400, "is damaged"),
        (("a.py", b"x = 1"), {"args": "'"}, 400, "args: "),
        (("a.py", b"x = 1"), {"config": "x"}, 400, "'x' has no value: write key=value"),
        (
            ("a.py", b"x = 1"),
            {"config": "worker.slot=1"},
            400,
            "override: worker.slot is not a known key",
        ),
        (("a.py", b"x = 1"), {"name": "no name"}, 409, "is not allowed"),
        (("a.py", b"x = 1"), {"name": "endless"}, 409, "endless"),
        (("a.py", b"x = 1"), {"executors": "-1"}, 422, "executors"),
    ],
)
def test_what_cannot_run_is_refused(
    served: Served, file: tuple[str, bytes], data: dict[str, str], status: int, text: str
) -> None:
    answer = served.http.post(f"{API}/master/submitprogram", files={"file": file}, data=data)

    assert answer.status_code == status
    assert text in answer.json()["error"]
    assert "gearpy-services" not in answer.json()["error"]


def test_an_archive_of_very_many_files_is_refused(served: Served) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"f{number}.py", b"")

    answer = served.http.post(
        f"{API}/master/submitprogram", files={"file": ("many.zip", made.getvalue())}
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith("many.zip has more than 10485 files: see artifact.")


@pytest.mark.parametrize(
    "text",
    ["-" * 200_000 + "1", "(" * 100_000, "x" + ".a" * 200_000, "not " * 100_000 + "x", "x\0y"],
    ids=["minus", "brackets", "attributes", "not", "null"],
)
@pytest.mark.parametrize("route", ["master/submitprogram", "appmaster/1/update"])
def test_a_program_that_cannot_be_compiled_is_refused(
    served: Served, route: str, text: str
) -> None:
    answer = served.http.post(
        f"{API}/{route}", files={"file": ("deep.py", text.encode())}, data={"args": ""}
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith("deep.py")


def test_a_graph_is_submitted(served: Served) -> None:
    jar = served.http.post(f"{API}/master/uploadjar", files={"jar": ("own.py", _TASKS)}).json()
    assert jar["name"] == "own.py"
    processors: dict[str, Any] = {
        "0": {"taskClass": "own.Numbers", "taskConf": {"by": 5}, "jar": jar},
        "1": {"taskClass": "own.Sink", "parallelism": 2, "jar": jar, "description": "sink"},
    }
    graph = {
        "appName": "graph",
        "processors": processors,
        "dag": {"vertexList": [0, 1], "edgeList": [[0, "ShufflePartitioner", 1]]},
        "userConfig": {"application.total-retries": "0"},
    }

    answer = served.http.post(f"{API}/master/submitdag", json=graph)

    assert answer.json().keys() == {"appId"}
    summary = ended(served, answer)
    assert (summary.status, summary.cause) == ("succeeded", None)


def test_a_graph_of_nothing_fails_with_its_cause(served: Served) -> None:
    graph = {
        "appName": "nothing",
        "processors": {"0": {"taskClass": "nowhere.Nothing"}},
        "dag": {"vertexList": [0], "edgeList": []},
    }

    summary = ended(served, served.http.post(f"{API}/master/submitdag", json=graph))

    assert summary.status == "failed"
    errors = served.get(f"appmaster/{summary.app_id}/errors").json()
    assert "No module named 'nowhere'" in errors["error"]
    assert errors["time"] > 0


def test_an_upload_that_is_gone_is_told(served: Served) -> None:
    jar = {"name": "own.py", "filePath": {"path": "../../etc"}}
    graph = {
        "appName": "gone",
        "processors": {"0": {"taskClass": "own.Numbers", "jar": jar}},
        "dag": {"vertexList": [0], "edgeList": []},
    }

    answer = served.http.post(f"{API}/master/submitdag", json=graph)

    assert answer.status_code == 400
    assert "upload it again" in answer.json()["error"]


def test_an_application_is_killed_and_started_again(served: Served) -> None:
    program = b"""
import itertools
import gearpy as gp

app = gp.StreamApp("again")
app.read(gp.generate(itertools.count, rate=10)).write(gp.to_list([]))
"""
    answer = served.http.post(f"{API}/master/submitprogram", files={"file": ("again.py", program)})
    first = answer.json()["appId"]
    eventually(lambda: served.cluster.client.ask(GetApplication(app_id=first)).status == "active")

    again = served.http.post(f"{API}/appmaster/{first}/restart").json()

    assert again == {"success": True, "reason": None, "appId": again["appId"]}
    assert again["appId"] > first
    eventually(
        lambda: served.cluster.client.ask(GetApplication(app_id=again["appId"])).status == "active"
    )
    assert served.http.post(f"{API}/appmaster/{again['appId']}/drain").status_code == 200
    client = served.cluster.client
    eventually(lambda: client.ask(GetApplication(app_id=again["appId"])).status == "terminated")
    killed = served.http.delete(f"{API}/appmaster/{again['appId']}")
    assert killed.status_code == 409
