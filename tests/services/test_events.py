"""The stream of events brings views while they change, and what was missed."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tests.services.conftest import API, Served


def events_of(answer: httpx.Response) -> Iterator[tuple[str, Any, str]]:
    event, event_id = "", ""
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "id":
            event_id = value
        elif name == "data":
            yield event, json.loads(value), event_id


def test_an_application_is_sent_while_it_changes(served: Served) -> None:
    with served.http.stream("GET", f"{API}/events", params={"app": 1}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        got = events_of(answer)
        first, second = next(got), next(got)

    assert first[0] == second[0] == "view"
    assert first[1]["name"] == "endless"
    assert first[1].keys() == served.get("appmaster/1/view").json().keys()
    assert int(second[2]) == second[1]["at_ms"] > first[1]["at_ms"]
    assert second[1]["totals"]["records_in"] > first[1]["totals"]["records_in"]


def test_the_cluster_is_sent(served: Served) -> None:
    with served.http.stream("GET", f"{API}/events") as answer:
        event, view, _ = next(events_of(answer))

    assert event == "overview"
    assert view.keys() == served.get("overview").json().keys()


def test_who_comes_back_gets_what_was_missed(served: Served) -> None:
    """The points since the last event."""
    headers = {"Last-Event-ID": "1"}
    with served.http.stream("GET", f"{API}/events?app=1", headers=headers) as answer:
        event, series, _ = next(events_of(answer))

    assert event == "series"
    assert series.keys() == served.get("appmaster/1/series").json().keys()
    columns = {name: each for name, each in series.items() if name.endswith("_rate")}
    assert {len(each) for each in columns.values()} == {len(series["at_ms"])}


def test_what_is_not_there_is_no_stream(served: Served) -> None:
    answer = served.get("events", app=99)

    assert answer.status_code == 404
    assert answer.json()["error"].startswith("no application has id 99")


def test_a_log_that_cannot_be_read_is_no_trouble_of_the_cluster(served: Served) -> None:
    """Whoever reads the log is told why; here the page would say that it is disconnected."""
    with served.http.stream("GET", f"{API}/events?app=1&executor=0") as answer:
        got = events_of(answer)
        events = [next(got)[0] for _ in range(3)]

    assert events == ["view"] * 3
    assert "in the process that has started it" in served.get("appmaster/1/executor/0/log").text
