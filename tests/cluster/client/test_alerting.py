"""Alerts of a cluster, and the webhook that is told of them, over HTTP."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec.structs import replace

from gearpy.cluster.client.alerting import Alerting, Webhook
from gearpy.config.schema import AlertsConfig, Config
from gearpy.errors import ConnectionLost
from gearpy.ids import AppId
from gearpy.messages.client import (
    AlertChange,
    AlertList,
    Asker,
    FiringAlert,
    GetAlerts,
    Refused,
    SilenceAlert,
)
from gearpy.views.alerts import RULES
from gearpy.views.app import app_view
from gearpy.views.model import AppView
from tests.eventually import DEADLINE_S
from tests.views.build import NOW_MS, a_look, a_summary

CHANGE = AlertChange(
    state="firing",
    at_ms=NOW_MS,
    app_id=7,
    name="revenue",
    alert=FiringAlert(
        app_id=AppId(7),
        name="revenue",
        rule="restarts",
        level="warn",
        since_ms=NOW_MS,
        text="too many",
    ),
)


@dataclass
class Receiver:
    refusals: int = 0
    bodies: list[Any] = field(default_factory=list)
    tried: int = 0
    came: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def take(self, body: bytes) -> int:
        self.tried += 1
        if self.tried <= self.refusals:
            return 503
        self.bodies.append(json.loads(body))
        self.came.set()
        return 204


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    taken = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(taken.take(body))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        taken.url = f"http://127.0.0.1:{server.server_address[1]}/alerts"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield taken
        server.shutdown()
        thread.join()


def test_a_webhook_gets_what_has_changed(receiver: Receiver) -> None:
    receiver.refusals = 2
    webhook = Webhook(receiver.url, pause_s=0.01)

    webhook.send([CHANGE], "k3f9")

    assert receiver.came.wait(DEADLINE_S)
    webhook.close()
    named = {"app_id": 7, "name": "revenue"}
    alert = {"rule": "restarts", "level": "warn", "since_ms": NOW_MS, "text": "too many"}
    changed = {"state": "firing", "at_ms": NOW_MS, **named, "alert": {**named, **alert}}
    assert receiver.bodies == [{"cluster_id": "k3f9", "alerts": [changed]}]
    assert receiver.tried == 3


def test_a_webhook_that_is_away_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook("http://127.0.0.1:9/nobody", pause_s=0.001)

    for _ in range(300):
        webhook.send([CHANGE])

    webhook.close()
    assert "the oldest is dropped" in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/services/HUSH",
        "http://ann:HUSH@127.0.0.1:9",
        "http://127.0.0.1:HUSH/x",
        "http://127.0.0.1:9/HUSH\x7f",
    ],
)
def test_what_is_logged_has_no_address_of_a_webhook(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever knows it may post there; an address that cannot be right is told as well."""
    webhook = Webhook(url, pause_s=0.001)
    webhook.send([CHANGE])
    webhook.close()

    assert "attempt" in caplog.text
    assert "HUSH" not in caplog.text


def test_nothing_is_posted_when_nothing_has_changed(receiver: Receiver) -> None:
    webhook = Webhook(receiver.url)
    webhook.send([])
    webhook.close()

    assert receiver.tried == 0


def test_alerts_are_followed_without_a_viewer(receiver: Receiver) -> None:
    failed = a_summary(status="failed", finished_ms=NOW_MS)
    looks = 0

    def look() -> list[AppView]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise ConnectionLost("the master is away")
        return [app_view(a_look(summary=failed, detail=None))]

    config = Config(alerts=AlertsConfig(webhooks=(receiver.url,)))
    with Alerting(look, lambda: "k3f9", config, every_s=0.01) as alerting:
        assert receiver.came.wait(DEADLINE_S)
        told = alerting.answer(GetAlerts())
        assert isinstance(told, AlertList)
        (alert,) = told.alerts
        assert [each.alert for each in told.history if each.state == "firing"] == [alert]
        assert {each.rule for each in told.rules} == {each.name for each in RULES}

    assert (alert.app_id, alert.name, alert.rule) == (7, "revenue", "failed")

    (posted,) = receiver.bodies
    assert [each["alert"]["rule"] for each in posted["alerts"]] == ["failed"]


def test_a_silenced_alert_is_hidden_and_told_to_a_webhook_when_that_has_ended(
    receiver: Receiver,
) -> None:
    views = [app_view(a_look())]
    config = Config(alerts=AlertsConfig(webhooks=(receiver.url,)))
    with Alerting(lambda: views, lambda: "k3f9", config, every_s=DEADLINE_S) as alerting:
        alerting.look()
        silence = SilenceAlert(
            app_id=AppId(7), rule="failed", until_ms=1 << 50, by=Asker(user="ann")
        )
        assert isinstance(alerting.answer(silence), AlertList)
        failed = a_summary(status="failed", finished_ms=NOW_MS)
        views[:] = [app_view(a_look(summary=failed, detail=None))]
        alerting.look()

        hidden = alerting.answer(GetAlerts())
        assert isinstance(hidden, AlertList)
        (told,) = hidden.silences
        assert (told.rule, told.name, told.user) == ("failed", "revenue", "ann")
        assert told.alert is not None
        assert hidden.alerts == ()
        assert [each.state for each in hidden.history] == ["firing"]

        ended = alerting.answer(replace(silence, until_ms=0))
        assert isinstance(ended, AlertList)
        assert (ended.silences, ended.alerts) == ((), (told.alert,))
        alerting.look()
        alerting.look()
    assert [body["alerts"][0]["state"] for body in receiver.bodies] == ["firing"]


def test_only_rules_and_applications_that_there_are_can_be_silenced() -> None:
    alerting = Alerting(lambda: [app_view(a_look())], str, Config())
    alerting.look()

    unknown = alerting.answer(SilenceAlert(app_id=AppId(9), rule="failed", until_ms=1 << 50))
    assert unknown == Refused(reason="no alerts of application 9 are known")
    odd = alerting.answer(SilenceAlert(app_id=AppId(7), rule="flies", until_ms=1 << 50))
    assert isinstance(odd, Refused)
    assert odd.reason.startswith("there is no rule 'flies': the rules are failed, ")
