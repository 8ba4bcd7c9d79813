"""Follows the alerts of a cluster, and tells a webhook when one fires or is resolved."""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Self

import msgspec

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.looking import ClusterWatch
from gearpy.config.hidden import host_alone
from gearpy.config.schema import Config
from gearpy.errors import GearpyError
from gearpy.messages.client import (
    AlertChange,
    AlertList,
    AlertSilence,
    FollowedRule,
    GetAlerts,
    GetCluster,
    Refused,
    SilenceAlert,
)
from gearpy.views.alerts import AlertBook, AlertLimits, Silences, rules_of, unknown_rule
from gearpy.views.model import AppView

_log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0
_HISTORY_MAX: Final = 100  # Changes that are remembered.
_WAITING_MAX: Final = 100  # Posts that wait for a webhook; older ones are dropped first.
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 1.0  # Before the second attempt; each further pause is twice as long.
_TIMEOUT_S: Final = 5.0


class Webhook:
    """Posts changes of alerts to a URL, as JSON, from a thread of its own.

    One post has all that has changed at a time: ``{"cluster_id", "alerts": [{"state", "at_ms",
    "app_id", "name", "alert": {"rule", "level", "since_ms", "text", ...}}]}``. One that fails is
    tried again a few times; nobody waits for it.
    """

    def __init__(self, url: str, *, pause_s: float = _PAUSE_S) -> None:
        self._url = url
        self._shown = host_alone(url)  # Its path lets in whoever knows it.
        self._pause_s = pause_s
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_MAX)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gearpy-webhook", daemon=True)
        self._thread.start()

    def send(self, changes: Sequence[AlertChange], cluster_id: str = "") -> None:
        """Hand changes over; returns at once. Of too many the oldest are dropped."""
        if changes:
            body = {"cluster_id": cluster_id, "alerts": changes}
            self._put(msgspec.json.encode(body))

    def close(self, timeout_s: float = _TIMEOUT_S) -> None:
        self._closing.set()
        self._put(None)
        self._thread.join(timeout_s)

    def _put(self, body: bytes | None) -> None:
        while True:
            try:
                self._waiting.put_nowait(body)
                return
            except queue.Full:
                _log.warning("too many alerts wait for %s: the oldest is dropped", self._shown)
                with suppress(queue.Empty):
                    self._waiting.get_nowait()

    def _run(self) -> None:
        from http.client import HTTPException, InvalidURL  # noqa: PLC0415 - few have a webhook
        from urllib.request import Request, urlopen  # noqa: PLC0415 - as above

        while (body := self._waiting.get()) is not None:
            pause_s, headers = self._pause_s, {"Content-Type": "application/json"}
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    request = Request(  # noqa: S310 - http and https are allowed
                        self._url, data=body, headers=headers, method="POST"
                    )
                    with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                        answer.read(1)
                    break
                except (OSError, ValueError, HTTPException) as error:
                    cause = str(error)
                    if isinstance(error, ValueError | InvalidURL):
                        cause = f"{type(error).__name__}: see alerts.webhooks"
                    _log.warning("alerts for %s, attempt %d: %s", self._shown, attempt, cause)
                if self._closing.wait(pause_s):
                    break
                pause_s *= 2
            else:
                text = "alerts for %s were given up: is it there, and does it answer 2xx?"
                _log.error(text, self._shown)


class Alerting:
    """Looks at all applications every few seconds, even if others do, and follows their alerts.

    Runs on: a thread of its own, beside the master, so that all clients see the same.

    Use as a context manager, or call `start` and `stop`.

    Args:
        look: returns a view of each application that there is; it may raise `GearpyError`.
        cluster_id: returns that of the cluster, for webhooks; it may raise it, too.
    """

    def __init__(
        self,
        look: Callable[[], Iterable[AppView]],
        cluster_id: Callable[[], str],
        config: Config,
        *,
        every_s: float = _EVERY_S,
    ) -> None:
        alerts = config.alerts
        limits = AlertLimits(memory_max_bytes=config.executor.memory_max_bytes)
        self._look, self._cluster_id = look, cluster_id
        self._every_s = every_s
        self._book = AlertBook(rules_of(thresholds_of(config), off=alerts.off), limits)
        self._rules = tuple(
            FollowedRule(
                rule=each.name,
                level=each.level,
                above=float(each.above),  # Of limits that are set, some are whole numbers.
                unit=each.unit,
                for_s=each.for_s,
                is_off=each.name in alerts.off,
            )
            for each in rules_of(thresholds_of(config))
        )
        self._silences = Silences()
        self._history = deque[AlertChange](maxlen=_HISTORY_MAX)
        self._lock = threading.Lock()
        self._webhooks = [Webhook(url) for url in alerts.webhooks]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gearpy-alerts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_TIMEOUT_S)
        for each in self._webhooks:
            each.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answer(self, question: GetAlerts | SilenceAlert) -> AlertList | Refused:
        with self._lock:
            now_ms = wall_ms()
            if isinstance(question, SilenceAlert):
                name = self._book.name_of(question.app_id)
                if not name:
                    return Refused(reason=f"no alerts of application {question.app_id} are known")
                if question.rule not in {each.rule for each in self._rules}:
                    return Refused(reason=unknown_rule(question.rule))
                self._silences.take(
                    AlertSilence(
                        app_id=question.app_id,
                        name=name,
                        rule=question.rule,
                        until_ms=question.until_ms,
                        user=question.by.user,
                    )
                )
            firing, history = self._book.firing(), tuple(self._history)
            silences = self._silences.lasting(firing, now_ms)
        hidden = {each.alert for each in silences}
        alerts = tuple(each for each in firing if each not in hidden)
        return AlertList(alerts=alerts, rules=self._rules, history=history, silences=silences)

    def look(self) -> None:
        """Look once, as it does every few seconds once it is started."""
        try:
            views, cluster_id = list(self._look()), self._cluster_id()
        except GearpyError as error:
            _log.info("alerts: the cluster does not answer: %s", error)
            return
        with self._lock:
            changes = self._book.on_views(views)
            self._history += changes
            told = self._silences.told(changes, self._book.firing(), wall_ms())
        for each in told:
            log = _log.warning if each.state == "firing" else _log.info
            log("%s: application %d (%s): %s", each.state, each.app_id, each.name, each.alert.text)
        for webhook in self._webhooks:
            webhook.send(told, cluster_id)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            self.look()


def following(ask: Callable[[Any], Any], config: Config) -> Alerting:
    client = ClusterClient(ask)
    return Alerting(
        ClusterWatch(client).applications, lambda: client.ask(GetCluster()).cluster_id, config
    )


def thresholds_of(config: Config) -> dict[str, float]:
    alerts = config.alerts
    return {
        "stalled-clock": config.streaming.stall_threshold_ms / 1000,
        "back-pressure": alerts.back_pressure_percent / 100,
        "restarts": alerts.restarts,
        "late-records": alerts.late_percent / 100,
        "executor-memory": alerts.memory_percent / 100,
    }
