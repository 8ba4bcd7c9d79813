"""Addresses and counters, see `gearpy.transport.api`."""

import pytest

from gearpy.errors import ConfigError
from gearpy.transport.api import Counters, TransportLimits, split_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:80", ("localhost", 80)),
        ("[::1]:0", ("::1", 0)),
        ("10.0.0.1:65535", ("10.0.0.1", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, expected: tuple[str, int]) -> None:
    """Names, IPv4 and IPv6."""
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:http", "host:65536", "h:-1"])
def test_anything_else_is_no_address(address: str) -> None:
    """The text says what to write."""
    with pytest.raises(ConfigError, match="write host:port"):
        split_address(address)


def test_a_snapshot_of_counters_does_not_change() -> None:
    """It was taken at a moment."""
    counters = Counters()
    counters.add(frames_in=2, bytes_in=10)
    snapshot = counters.snapshot()

    counters.add(frames_in=1)

    assert (snapshot.frames_in, snapshot.bytes_in) == (2, 10)
    assert counters.snapshot().frames_in == 3


def test_limits_reach_the_wire() -> None:
    """The transport's limits are those of its connections."""
    limits = TransportLimits(
        frame_bytes_max=1, control_frame_bytes_max=2, handshake_timeout_ms=3, handshake_bytes_max=4
    )

    assert (limits.frames.data_bytes_max, limits.frames.control_bytes_max) == (1, 2)
    assert (limits.handshake.timeout_ms, limits.handshake.bytes_max) == (3, 4)
