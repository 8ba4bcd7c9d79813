"""Programs that run are changed by REST: updated, scaled, rolled back, and by Gearpump's names."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest

from gearpy.messages.client import GetApplication
from tests.eventually import eventually
from tests.services.conftest import API, Served

_LONG_S: Final = 120
_PROGRAM: Final = """
import itertools
import gearpy as gp

app = gp.StreamApp("changed")
numbers = app.read(gp.generate(itertools.count, rate=100), name="numbers")
by_rest = numbers.key_by(lambda n: n % STEP)
by_rest.map_with_state(lambda total, n: (total + n, total), initial=0, name="NAME").write(
    gp.to_list([]), name="show"
)
"""
_TYPE: Final = "org.apache.gearpump.streaming.appmaster.DagManager."


def program(*, step: int = 5, name: str = "total") -> bytes:
    return _PROGRAM.replace("STEP", str(step)).replace("NAME", name).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    http: httpx.Client
    path: str

    def post(self, route: str, **sent: Any) -> httpx.Response:
        return self.http.post(f"{self.path}/{route}", **sent)

    def dynamicdag(self, args: object, *, allow_drop: bool = False, **sent: Any) -> httpx.Response:
        text = args if isinstance(args, str) else json.dumps(args)
        return self.post("dynamicdag", params={"args": text, "allow_drop": allow_drop}, **sent)

    def versions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get(f"{self.path}/versions").json()["versions"]
        return found

    def newest(self) -> dict[str, Any]:
        """Return the newest version, when it is known whether it stays, and all its tasks run."""

        def is_decided() -> bool:
            return self.versions()[-1]["state"] in {"running", "failed"}

        eventually(is_decided, within_s=_LONG_S)
        return self.versions()[-1]

    def view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"{self.path}/view").json()
        return found

    def steps(self) -> dict[int, int]:
        plan = self.http.get(f"{self.path}/plan").json()
        return {each["number"]: each["parallelism"] for each in plan["processors"]}


@pytest.fixture(scope="module")
def changed(served: Served) -> Iterator[Changed]:
    answer = served.http.post(
        f"{API}/master/submitprogram",
        files={"file": ("changed.py", program())},
        data={"config": "application.trial-seconds = 1"},
    )
    app_id = answer.json()["appId"]
    path = f"{API}/appmaster/{app_id}"
    eventually(
        lambda: served.cluster.client.ask(GetApplication(app_id=app_id)).progress.epoch > 1,
        within_s=_LONG_S,
    )
    yield Changed(http=served.http, path=path)
    served.http.delete(path)


def test_a_plan_changes_nothing(changed: Changed) -> None:
    """It has the fate of each step, and says what would be refused."""
    answer = changed.post("scale", json={"steps": {"total": 3}, "dry_run": True})

    plan = answer.json()
    assert (answer.status_code, plan["has_begun"], plan["refusal"]) == (200, False, "")
    fates = {each["name"]: each["fate"] for each in plan["moves"]}
    assert fates["total"] == "kept"
    assert any("x1 to x3" in each["text"] for each in plan["moves"])
    other = {"files": {"file": ("changed.py", program(name="other"))}, "data": {"dry_run": "true"}}
    refused = changed.post("update", **other).json()
    assert "no place for what these steps keep" in refused["refusal"]
    assert "--" not in refused["refusal"]
    assert [each["is_lost"] for each in refused["moves"] if each["name"] == "total"] == [True]
    code = {"files": {"file": ("changed.py", program(step=7))}, "data": {"dry_run": "true"}}
    updated = changed.post("update", **code).json()
    replaced = {name for each in updated["differences"] for name in each.split(":")[0].split(", ")}
    assert {"total", "show"} <= replaced
    assert {each["fate"] for each in updated["moves"]} == {"kept"}
    assert updated["goes_on"] == []
    assert len(changed.versions()) == 1


def test_it_is_scaled_updated_and_rolled_back(changed: Changed) -> None:
    scaled = changed.post("scale", json={"steps": {"total": 3}}).json()
    assert scaled["has_begun"]
    assert changed.newest()["state"] == "running"
    assert changed.steps()[1] == 3

    new = {"taskClass": "", "parallelism": 2, "description": "", "executors": [0]}
    immortal = {"birth": "0", "death": "9223372036854775807"}
    args = {
        "$type": f"{_TYPE}ReplaceProcessor",
        "oldProcessorId": 1,
        "newProcessorDescription": {**new, "taskConf": {"_config": {}}, "life": immortal},
        "inheritConf": False,
    }
    assert changed.dynamicdag(args).json() == {"$type": f"{_TYPE}DAGOperationSuccess"}
    assert (changed.newest()["state"], changed.newest()["change"]) == ("running", "scale total=2")
    assert changed.steps()[1] == 2

    updated = changed.post("update", files={"file": ("changed.py", program(step=7))}).json()
    assert updated["has_begun"]
    assert changed.newest()["change"] == "update changed.py"
    back = changed.post("rollback", json={"version": 1}).json()
    assert back["version"] == 4
    last = changed.newest()
    assert (last["change"], last["state"]) == ("back to version 1", "running")
    assert last["epoch"] > 0
    assert [each["number"] for each in changed.versions()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("route", "body", "status", "text"),
    [
        ("scale", {"steps": {"nobody": 3}}, 409, "no step is called 'nobody'"),
        ("scale", {"steps": {}}, 422, "steps"),
        ("scale", {"steps": {"total": 0}}, 422, "steps"),
        ("scale", {"steps": {"total": "8..1"}}, 400, "at most 1 tasks are fewer than at least 8"),
        ("scale", {"steps": {"total": "many"}}, 400, "as in count=1..8"),
        ("rollback", {"version": 99}, 409, "there is no version 99; there are 0, 1"),
        ("rollback", {"version": -1}, 422, "version"),
    ],
)
def test_what_cannot_be_changed_is_told(
    changed: Changed, route: str, body: object, status: int, text: str
) -> None:
    answer = changed.post(route, json=body)

    assert answer.status_code == status, answer.text
    assert text in answer.json()["error"]


def test_autoscale_gets_bounds(changed: Changed) -> None:
    plan = changed.post("scale", json={"steps": {"total": "1..4@60%"}}).json()

    assert (plan["has_begun"], plan["refusal"]) == (False, "")
    chosen = eventually(lambda: changed.view()["scaled"])
    bounds = {each["step"]: each["bounds"] for each in chosen}
    assert bounds["total"] == {"least": 1, "most": 4, "busy": 0.6}


def test_a_program_without_a_place_for_what_is_kept_is_refused(changed: Changed) -> None:
    answer = changed.post("update", files={"file": ("changed.py", program(name="other"))})

    assert answer.status_code == 409
    assert "allow_drop" in answer.json()["error"]


def test_a_graph_may_be_changed_by_gearpumps_names_though_state_is_dropped(
    changed: Changed,
) -> None:
    life = {"birth": str(10**14), "death": "9223372036854775807"}
    one = {"oldProcessorId": 1, "newProcessorDescription": {"life": life}}
    files = {"jar": ("changed.py", program(name="other"))}

    refused = changed.dynamicdag(one, files=files)
    waits = changed.dynamicdag(one, files=files, allow_drop=True)
    newest = changed.versions()[-1]
    changed.post("call-off")

    assert (refused.status_code, "allow_drop" in refused.text) == (409, True)
    assert (waits.status_code, newest["state"]) == (200, "waiting"), waits.text


_ONE: Final = {"parallelism": 2}


def test_a_change_waits_for_its_event_time_and_is_called_off(changed: Changed) -> None:
    at_ms, far = 9_000_000_000_000, "2255-03-14T16:00:00Z"
    files = {"file": ("changed.py", program())}
    life = {"birth": str(at_ms), "death": "9223372036854775807"}
    new = {"parallelism": 5, "life": life}

    wrong = changed.post("update", files=files, data={"at": "soon"})
    changed.post("update", files=files, data={"at": far})
    waits, refused = changed.versions()[-1], changed.post("scale", json={"steps": {"total": 4}})
    shown = eventually(lambda: changed.view()["change"])  # Views are of the last second.
    off = changed.post("call-off").json()
    eventually(lambda: changed.view()["change"] is None)
    bounds = changed.post("scale", json={"steps": {"total": "1..4"}, "at": far})
    changed.post("scale", json={"steps": {"total": 5}, "at": far})
    by_rest = changed.versions()[-1]
    changed.post("call-off")
    changed.dynamicdag({"oldProcessorId": 1, "newProcessorDescription": new})
    scaled = changed.versions()[-1]
    changed.post("call-off")
    changed.post("rollback", json={"version": 0, "at": far})
    back = changed.versions()[-1]
    changed.post("call-off")
    again = changed.post("call-off")

    assert (wrong.status_code, "write it with its time zone" in wrong.text) == (400, True)
    assert (waits["state"], waits["change"]) == ("waiting", f"update changed.py at {far}")
    assert "a change waits for its event time" in refused.json()["error"]
    assert off["version"] == shown["version"] == waits["number"]
    assert (shown["doing"], shown["at_event_ms"]) == ("it waits for its event time", at_ms)
    assert shown["may_be_called_off"]
    assert "bounds of autoscale cannot wait" in bounds.json()["error"]
    assert by_rest["change"] == scaled["change"]
    assert (scaled["state"], scaled["change"]) == ("waiting", f"scale total=5 at {far}")
    assert (back["state"], back["change"]) == ("waiting", f"back to version 0 at {far}")
    assert [each["state"] for each in changed.versions()[-3:]] == ["failed", "failed", "failed"]
    assert "called off" in changed.versions()[-1]["reason"]
    assert (again.status_code, "called off now: no change is under way" in again.text) == (
        409,
        True,
    )


@pytest.mark.parametrize(
    ("args", "status", "text", "fix"),
    [
        ("x", 400, "args is no ReplaceProcessor", "oldProcessorId"),
        ({"oldProcessorId": 1}, 400, "newProcessorDescription: Field required", "such as"),
        (
            {"oldProcessorId": 77, "newProcessorDescription": _ONE},
            404,
            "there is no processor 77; there are: 0, 1",
            None,
        ),
        (
            {"oldProcessorId": 1, "newProcessorDescription": {**_ONE, "taskClass": "a.B"}},
            400,
            "a class is replaced with its program only",
            "send its program as jar, or use gear app update",
        ),
        (
            {"oldProcessorId": 1, "newProcessorDescription": {**_ONE, "taskConf": {"by": 0}}},
            400,
            "taskConf cannot be changed",
            "send its program",
        ),
        (
            {
                "oldProcessorId": 1,
                "newProcessorDescription": {
                    **_ONE,
                    "life": {"birth": "0", "death": "1450759382430"},
                },
            },
            400,
            "a processor ends when another one takes its place",
            "replace it at that event time",
        ),
        ({"oldProcessorId": 1, "newProcessorDescription": {}}, 400, "nothing is to change", ""),
        (
            {"$type": "x.AddProcessor", "oldProcessorId": 1, "newProcessorDescription": _ONE},
            400,
            "x.AddProcessor is not known",
            "there is only ReplaceProcessor",
        ),
        (
            {
                "oldProcessorId": 1,
                "newProcessorDescription": {"jar": {"name": "a.py", "filePath": {"path": "../a"}}},
            },
            400,
            "upload it again",
            None,
        ),
    ],
)
def test_what_cannot_be_had_of_gearpump_says_what_can(
    changed: Changed, args: object, status: int, text: str, fix: str | None
) -> None:
    answer = changed.dynamicdag(args)

    assert answer.status_code == status, answer.text
    assert text in answer.json()["error"]
    assert (fix or "") in (answer.json()["fix"] or "")
