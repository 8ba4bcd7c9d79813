"""What a sink asks about topics, on several threads."""

from concurrent.futures import Future
from contextlib import suppress
from threading import Thread, current_thread
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from gearpy.connectors.kafka.client import ClientState
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.writing import topics
from gearpy.connectors.kafka.writing.topics import SinkTopics
from gearpy.errors import GearpyError


def test_two_threads_that_ask_brokers_that_are_away_do_not_disturb_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = current_thread()
    cluster = KafkaCluster("127.0.0.1:1")
    asked = SinkTopics(
        "sink", cluster, ClientState(cluster), goes_on=lambda: False, prepare=lambda _: None
    )

    def ask() -> None:
        with suppress(GearpyError):
            asked.facts("t")

    class Away:
        """A client that has no answer, and that the other thread asks first."""

        def describe_topics(self, *_: Any, **__: Any) -> dict[str, Future[Any]]:
            if current_thread() is mine:
                other = Thread(target=ask)
                other.start()
                other.join()
            answer = Future[Any]()
            answer.set_exception(KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)))
            return {"t": answer}

        def poll(self, _: float) -> None:
            """Do nothing."""

    monkeypatch.setattr(topics, "make_admin", lambda *_: Away())
    with pytest.raises(GearpyError, match="ended while it waited for Kafka"):
        asked.facts("t")
