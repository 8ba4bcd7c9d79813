"""Results of windows: shown, sent, and made fast."""

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.window_result import WindowResult, result_of
from gearpy.wire.values.payload import decode_batch, encode_batch


def test_repr_leaves_out_what_is_as_it_mostly_is() -> None:
    assert repr(WindowResult("a", 3, 0, 10)) == "WindowResult(key='a', value=3, start=0, end=10)"
    assert repr(WindowResult("a", 3, 0, 10, 1, "late", retracts=True)) == (
        "WindowResult(key='a', value=3, start=0, end=10, firing=1, timing='late', retracts=True)"
    )


def test_result_of_a_tuple_is_a_result() -> None:
    made = result_of(("a", 3, 0, 10, 0, "on-time", False))

    assert made == WindowResult("a", 3, 0, 10)
    assert type(made) is WindowResult


def test_result_crosses_processes() -> None:
    results = [
        WindowResult("key", 3, MIN_MS, MAX_MS),
        WindowResult("key", 3, 0, 10, 2, "early", retracts=True),
    ]

    decoded = decode_batch(b"".join(encode_batch([*results], [MAX_MS - 1, 9])), 2)

    assert decoded.values == results
    assert {type(value) for value in decoded.values} == {WindowResult}
