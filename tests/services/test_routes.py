"""Every route of a cluster that runs gives what it should; and says no where it should."""

import base64
from typing import Any

import pytest

import gearpy as gp
from tests.eventually import eventually
from tests.services.conftest import Served

_APP = "appmaster/1"

#: Routes that answer with data, and a part of the answer.
ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("session", {"user": "root", "login_required": False}),
    ("master/partitioners", {}),
    ("master/config", {}),
    ("worker/0", {"workerId": "0", "totalSlots": 50}),
    ("worker/1/config", {}),
    ("supervisor", {"path": None}),
    (_APP, {"appName": "endless", "status": "active"}),
    (f"{_APP}?detail=true", {"appName": "endless"}),
    (f"{_APP}/stallingtasks", {}),
    (f"{_APP}/config", {}),
    (f"{_APP}/executor/-1", {"id": -1, "taskCount": 0}),
    (f"{_APP}/executor/0", {"id": 0, "status": "active"}),
    (f"{_APP}/executor/0/config", {}),
    (f"{_APP}/executor/-1/config", {}),
    (f"{_APP}/why", {"app_id": 1, "name": "endless"}),
    (f"{_APP}/plan", {"name": "endless"}),
    (f"{_APP}/view", {"app_id": 1, "name": "endless", "status": "active"}),
    (f"{_APP}/processor/0", {"id": 0, "role": "source"}),
    (f"{_APP}/series", {}),
    (f"{_APP}/state", {"app_id": 1}),
    (f"{_APP}/state/count?limit=2", {"app_id": 1, "total": 5}),
    ("alerts", {"alerts": []}),
    ("overview", {"version": gp.__version__}),
)


@pytest.mark.parametrize(("path", "part"), ANSWERS, ids=[path for path, _ in ANSWERS])
def test_a_route_answers(served: Served, path: str, part: dict[str, Any]) -> None:
    answer = served.http.get(f"/api/v1.0/{path}")

    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    content = answer.json()
    if "user" in part:
        part = {**part, "user": content["user"]}
    assert {key: content[key] for key in part} == part


def test_prometheus_is_told_what_to_read(served: Served) -> None:
    (target,) = served.get("prometheus/targets").json()

    assert target == {
        "targets": [served.http.base_url.netloc.decode()],
        "labels": {
            "__scheme__": "http",
            "__param_except": "pages",
            "__meta_gearpy_process": "services",
        },
    }


def test_prometheus_reads_the_whole_cluster(served: Served) -> None:
    count = 'gearpy_records_in_total{app="endless",processor="0",task="0.0"}'
    eventually(lambda: count in served.http.get("/metrics").text)  # From the first report on.
    answer = served.http.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "gearpy_workers 2.0" in answer.text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("appmaster/99", 404, "no application has id 99; ids known: 1"),
        ("appmaster/99/view", 404, "no application has id 99"),
        ("appmaster/99/errors", 404, "no application has id 99"),
        ("appmaster/99/config", 404, "no application has id 99"),
        ("worker/9", 404, "no worker has id 9; there are: 0, 1"),
        (f"{_APP}/executor/77", 404, "application 1 has no executor 77; there are: 0, 1"),
        (f"{_APP}/processor/77", 404, "application 1 has no processor 77"),
        (f"{_APP}/state/nobody", 400, "no step 'nobody' that keeps something"),
        (f"{_APP}/state/count?epoch=999999", 400, "no epoch 999999"),
        (f"{_APP}/quarantine?number=999999", 409, "no record 999999"),
        (f"{_APP}/executor/0/log", 409, "runs in the process that has started it"),
        ("nowhere", 404, "there is nothing at /api/v1.0/nowhere"),
        ("appmaster/x", 422, "app_id"),
        ("appmaster/-1", 422, "app_id"),
    ],
)
def test_what_is_not_there_is_told(served: Served, path: str, status: int, text: str) -> None:
    answer = served.http.get(f"/api/v1.0/{path}")

    assert answer.status_code == status
    assert text in answer.json()["error"]
    assert answer.json().keys() == {"error", "fix"}


def test_the_view_is_of_what_runs(served: Served) -> None:
    view = served.get(f"{_APP}/view").json()

    assert [each["role"] for each in view["processors"]] == ["source", "sink"]
    assert view["totals"]["records_in"] > 0
    assert len(view["edges"]) == len(view["processors"]) - 1
    assert {each["id"] for each in view["executors"]} == {0, 1}


def test_epochs_and_quarantine_are_listed(served: Served) -> None:
    """Epochs with sizes; of records in quarantine one with value and traceback."""
    epochs = served.get(f"{_APP}/checkpoints").json()["epochs"]
    assert all(each["size_bytes"] > 0 and each["stored_ms"] > 0 for each in epochs)
    listed = served.get(f"{_APP}/quarantine").json()
    first = listed["records"][0]
    assert first["value"] is None
    assert "is a multiple of seven" in first["error"]["cause"]

    whole = served.get(f"{_APP}/quarantine", number=first["number"]).json()["records"]

    assert len(whole) == 1
    assert listed["total"] == len(listed["records"])
    assert "Traceback" in whole[0]["error"]["traceback"]
    assert base64.b64decode(whole[0]["value"])


def test_a_record_is_given_back(served: Served) -> None:
    first = served.get(f"{_APP}/quarantine").json()["records"][0]["number"]

    answer = served.http.post(f"/api/v1.0/{_APP}/quarantine/replay", json={"numbers": [first]})

    assert answer.json() == {"app_id": 1, "replayed": [first]}

    def is_forgotten() -> bool:
        left = served.get(f"{_APP}/quarantine").json()["records"]
        return first not in [each["number"] for each in left]

    eventually(is_forgotten)


def test_an_alert_is_silenced_by_the_name_of_its_rule(served: Served) -> None:
    path = f"/api/v1.0/{_APP}/alerts/{{}}/silence?minutes=5"

    def told() -> Any:
        return served.http.post(path.format("restarts")).json().get("silences")

    (silence,) = eventually(told)

    assert (silence["rule"], silence["app_id"], silence["alert"]) == ("restarts", 1, None)
    assert served.get("alerts").json()["silences"] == [silence]
    assert "the rules are failed" in served.http.post(path.format("odd")).json()["error"]


def test_the_schema_is_whole(served: Served) -> None:
    schema = served.http.get("/openapi.json").json()

    told = {path for path, _ in ANSWERS}
    assert len(schema["paths"]) > len(told)
    assert "/api/v1.0/appmaster/{app_id}/executor/{executor_id}/log" in schema["paths"]


def test_the_version_is_text(served: Served) -> None:
    answer = served.http.get("/version")

    assert (answer.status_code, answer.text) == (200, gp.__version__)


def test_state_is_shown_as_at_the_end_of_an_epoch(served: Served) -> None:
    [listed] = served.get(f"{_APP}/state").json()["states"]
    assert (listed["name"], listed["state"], listed["cells"]) == ("count", "running", 5)

    shown = served.get(f"{_APP}/state/{listed['step']}").json()
    counts = {row["key"]: row["value"] for row in shown["rows"]}
    assert counts.keys() == set(range(5))
    assert max(counts.values()) - min(counts.values()) <= 10  # Ten numbers were put aside.
    assert shown["moment"]["exact"]
    assert {"name": "key", "type": "int64"} in shown["columns"]

    one = served.get(f"{_APP}/state/count", key="3", epoch=shown["moment"]["epoch"])
    if one.status_code == 200:  # That epoch may have gone meanwhile.
        assert one.json()["rows"] == [row for row in shown["rows"] if row["key"] == 3]
    assert served.get(f"{_APP}/state/count", key="x").json()["total"] == 0


def test_measurements_of_an_application_that_has_ended(served: Served) -> None:
    app = gp.StreamApp("short")
    app.read(gp.collection([1, 2, 3])).write(gp.to_list([]))
    with served.cluster.submitted(app) as running:
        path = f"appmaster/{running.app_id}"
        assert running.wait(60).status == "succeeded"
        asked = {"readOption": "readHistory"}  # The last of what is left.
        eventually(lambda: served.get(f"{path}/metrics/app", **asked).status_code == 200)
        latest = served.get(f"{path}/metrics/app")
        series = served.get(f"{path}/series")

    assert latest.status_code == series.status_code == 200
    names = {each["value"]["name"] for each in latest.json()["metrics"]}
    assert f"app{running.app_id}.processor0.task0:sendThroughput" in names
    assert "processors" in series.json()


def test_an_aggregator_that_is_not_there_is_told(served: Served) -> None:
    path = f"appmaster/{served.running.app_id}/metrics/app{served.running.app_id}"
    package = "org.apache.gearpump.streaming.metrics."

    answer = served.get(path, aggregator=f"{package}ProcesorAggregator")

    assert answer.status_code == 400
    assert answer.json()["error"] == "there is no aggregator ProcesorAggregator"
    assert answer.json()["fix"] == "there are ProcessorAggregator and TaskFilterAggregator"
    assert served.get(path, aggregator=f"{package}ProcessorAggregator").status_code == 200
