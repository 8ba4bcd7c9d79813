"""Which hosts and origins a request may name."""

import pytest

from gearpy.services.security.origins import host_of, is_own_host, origin_problem


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8090", "localhost"),
        ("example.org.:80", "example.org"),
        ("127.0.0.1:8090", "127.0.0.1"),
        ("[::1]:8090", "::1"),
        ("[::1]", "::1"),
        ("", ""),
        ("[::1", ""),
        ("[::1]x", ""),
        ("a:b", ""),
        ("a:1:2", ""),
    ],
)
def test_a_host_header_has_a_host(header: str, host: str) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(
    ("header", "is_own"),
    [
        ("localhost:1", True),
        ("127.0.0.1:1", True),
        ("10.1.2.3", True),
        ("[fe80::1]:8090", True),
        ("streams.example.org", True),
        ("Streams.Example.Org:8090", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_a_name_that_is_not_ours_is_refused(header: str, *, is_own: bool) -> None:
    """Addresses cannot be rebound; names that others own can."""
    assert is_own_host(header, {"streams.example.org"}) is is_own


HOST = {"host": "localhost:8090"}


@pytest.mark.parametrize(
    ("method", "headers", "has_cookie", "is_stream", "is_refused"),
    [
        ("GET", {}, False, False, False),
        ("POST", {}, False, False, False),  # No browser sends it so.
        ("POST", {"origin": "http://localhost:8090"}, True, False, False),
        ("POST", {"origin": "https://localhost:8090"}, True, False, False),
        ("POST", {"origin": "http://localhost"}, True, False, True),
        ("POST", {"origin": "http://localhost:8091"}, False, False, True),
        ("POST", {"origin": "null"}, False, False, True),
        ("GET", {"origin": "http://evil.example"}, False, False, True),
        ("POST", {}, True, False, True),
        ("GET", {}, True, False, False),
        ("POST", {"sec-fetch-site": "same-origin"}, False, False, False),
        ("POST", {"sec-fetch-site": "cross-site"}, False, False, True),
        ("GET", {"sec-fetch-site": "cross-site"}, False, False, False),  # A link elsewhere.
        ("GET", {"sec-fetch-site": "cross-site"}, False, True, True),
        ("GET", {"sec-fetch-site": "none"}, False, True, False),
    ],
)
def test_requests_of_other_sites_are_refused(
    method: str, headers: dict[str, str], *, has_cookie: bool, is_stream: bool, is_refused: bool
) -> None:
    problem = origin_problem(
        method, {**HOST, **headers}, has_cookie=has_cookie, is_stream=is_stream
    )

    assert bool(problem) is is_refused
