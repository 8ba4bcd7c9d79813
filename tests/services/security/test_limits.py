"""How often a client may ask: a burst, and then so many a second."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.services.security.limits import RequestRates


def test_a_burst_and_then_a_rate() -> None:
    rates = RequestRates(per_s=2, burst=3)

    assert [rates.wait_s("a", 0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.wait_s("b", 0) == 0
    assert rates.wait_s("a", 0.5) == 0
    assert rates.wait_s("a", 0.5) == 0.5


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200), st.floats(0.5, 10), st.integers(1, 20))
def test_never_more_than_the_burst_and_the_rate(
    pauses: list[float], per_s: float, burst: int
) -> None:
    rates, now_s, allowed = RequestRates(per_s, burst), 0.0, 0
    for pause_s in pauses:
        now_s += pause_s
        allowed += not rates.wait_s("client", now_s)
        assert allowed <= burst + per_s * now_s + 1e-6


def test_clients_are_forgotten() -> None:
    rates = RequestRates(per_s=1, burst=1)
    for number in range(10_001):
        rates.wait_s(f"client {number}", 0)

    assert rates.wait_s("client 10000", 0) > 0
    assert rates.wait_s("client 0", 0) == 0
