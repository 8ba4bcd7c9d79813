"""The search for partitions, while brokers are away. Nothing listens here."""

import time

import gearpy as gp
from tests.eventually import eventually

#: A question waits for 5 s, and would hold the task up for as long.
_QUESTION_S = 5.0


def test_a_task_goes_on_while_a_question_waits_for_brokers() -> None:
    finder = gp.kafka("orders", servers="127.0.0.1:1").discover(0, 1, ())
    took_s: list[float] = []

    def asked() -> bool:
        began = time.monotonic()
        found = finder.find()
        took_s.append(time.monotonic() - began)
        return found == {} and bool(finder.waits_for)

    try:
        eventually(asked)
        assert min(took_s) < _QUESTION_S - 1
    finally:
        finder.close()
