"""Addresses and counters, see `gearpy.transport.api`."""

import pytest

from gearpy.errors import ConfigError
from gearpy.transport.api import split_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:80", ("localhost", 80)),
        ("[::1]:0", ("::1", 0)),
        ("10.0.0.1:65535", ("10.0.0.1", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, expected: tuple[str, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:http", "host:65536", "h:-1"])
def test_anything_else_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError, match="write host:port"):
        split_address(address)
