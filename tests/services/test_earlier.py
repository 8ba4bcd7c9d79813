"""The paths of Gearpump 0.6, one after the other, and its WebSocket."""

import json
from contextlib import closing

import pytest

from gearpy import __version__
from gearpy.services.server import Services
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.eventually import eventually
from tests.services.conftest import API, Served, a_config
from tests.services.sockets import Refused, messages_of
from tests.services.test_events import events_of

#: Each GET of Gearpump 0.6, and the path that answers the same today.
SAME = {
    "appmaster/1": "appmaster/1",
    "appmaster/1/stallingtasks": "appmaster/1/stallingtasks",
    "appmasters": "master/applist",
    "config/app/1": "appmaster/1/config",
    "config/worker/0": "worker/0/config",
    "config/master": "master/config",
    "master": "master",
    "workers/0": "worker/0",
    "workers": "master/workerlist",
}
#: They differ from one moment to the next.
MOVING = {"aliveFor", "availableSlots", "executors"}


def steady(answer: object) -> object:
    if isinstance(answer, dict):
        return {key: steady(value) for key, value in answer.items() if key not in MOVING}
    return [steady(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("path", SAME)
def test_a_path_of_0_6_answers_as_that_of_today(served: Served, path: str) -> None:
    earlier, today = served.get(path), served.get(SAME[path])

    assert earlier.status_code == today.status_code == 200
    assert steady(earlier.json()) == steady(today.json())
    assert earlier.json()


def test_metrics_have_the_number_of_the_application(served: Served) -> None:
    answer = served.get("metrics/app/1/app1.processor1").json()

    assert answer["appId"] == 1
    assert answer["path"] == "app1.processor1"
    assert all(each["value"]["name"].startswith("app1.processor1") for each in answer["metrics"])
    assert answer["metrics"]


def test_the_version_is_text_for_everybody(served: Served) -> None:
    answer = served.get("version")
    assert answer.text == served.http.get("/version").text == __version__
    assert answer.headers["content-type"].startswith("text/plain")


def test_the_socket_sends_what_the_stream_of_events_does(served: Served) -> None:
    url = served.get("websocket/url").json()["url"]
    assert url == served.services.url.replace("http", "ws") + f"{API}/websocket"

    with closing(messages_of(f"{url}?app=1", says="{}")) as socket:
        first, second = next(socket), next(socket)
    with served.http.stream("GET", f"{API}/events", params={"app": 1}) as answer:
        event, view, _ = next(events_of(answer))

    assert first["event"] == second["event"] == event == "view"
    assert first["data"].keys() == view.keys()
    assert second["id"] == second["data"]["at_ms"] > first["id"]
    assert second["data"]["totals"]["records_in"] > first["data"]["totals"]["records_in"]
    with closing(messages_of(url)) as socket:
        assert next(socket)["event"] == "overview"
    with closing(messages_of(f"{url}?app=1&since_ms=1")) as socket:
        assert next(socket)["event"] == "series"


def test_who_leaves_is_watched_for_no_more(served: Served) -> None:
    topics = served.services._deps.topics  # noqa: SLF001 - nobody else needs to know
    eventually(lambda: topics._viewers == 0)  # noqa: SLF001 - the same
    url = f"{served.services.url}{API}/websocket"
    socket = messages_of(url)
    next(socket)
    assert topics._viewers == 1  # noqa: SLF001 - the same
    socket.close()
    eventually(lambda: topics._viewers == 0)  # noqa: SLF001 - the same


def test_a_socket_that_is_refused_says_why(served: Served) -> None:
    url = f"{served.services.url}{API}/websocket"
    for status, address, headers in (
        (404, f"{url}?app=99", {}),
        (403, url, {"Origin": "http://elsewhere.example"}),
    ):
        with pytest.raises(Refused) as refused:
            next(messages_of(address, headers))
        assert refused.value.status == status
        assert json.loads(refused.value.body)["error"]


def test_a_socket_needs_a_token_where_all_do(
    served: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = a_config(tmp_path_factory.mktemp("sockets"))
    secret = TokenFile(config.services.token_file).add("ann", TokenScope.READ, now_ms=1)
    with Services(served.cluster.client, config) as services:
        url = f"{services.url}{API}/websocket"
        with pytest.raises(Refused) as refused:
            next(messages_of(url))
        assert refused.value.status == 401
        socket = messages_of(url, {"Authorization": f"Bearer {secret}"})
        assert next(socket)["event"] == "overview"
    assert all(each["event"] for each in socket)
