"""What joins yield."""

from typing import Any

from gearpy.task.api.window_result import CoGroup, JoinResult
from gearpy.wire.values.payload import decode_value, encode_value


def test_results_travel() -> None:
    pair: JoinResult[str, Any, Any] = JoinResult("a", {"id": 1}, None, 0, 10)
    group: CoGroup[str, int, int] = CoGroup("a", [1, 2], [], 0, 10)

    assert decode_value(encode_value([pair, group])) == [pair, group]
    assert type(decode_value(encode_value(pair))) is JoinResult
    assert type(decode_value(encode_value(group))) is CoGroup


def test_results_are_shown_with_their_fields() -> None:
    assert repr(JoinResult("a", 1, None, 0, 10)) == (
        "JoinResult(key='a', left=1, right=None, start=0, end=10)"
    )
