"""Checks the hosts and origins that requests name, against other sites and rebound DNS."""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Final

#: Methods that change nothing.
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL_NAMES: Final = frozenset({"localhost"})


def host_of(header: str) -> str:
    """Return the host in a Host header, without its port; empty for nonsense."""
    text = header.strip().lower()
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        return (
            host if closed and (not rest or (rest.startswith(":") and rest[1:].isdigit())) else ""
        )
    host, colon, port = text.partition(":")
    return host.removesuffix(".") if not colon or port.isdigit() else ""


def is_own_host(header: str, names: Collection[str]) -> bool:
    """Tell whether a Host header names these services.

    A page of another site can have its own name resolve to our address, and then ask us as if it
    were ours. It cannot do so with an address or with a name that it does not own.
    """
    host = host_of(header)
    if host in _LOCAL_NAMES or host in names:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def origin_problem(
    method: str, headers: Mapping[str, str], *, has_cookie: bool, is_stream: bool
) -> str:
    """Return why a request must be refused as one of another site; empty if it need not be."""
    origin, host = headers.get("origin"), headers.get("host", "").strip().lower()
    if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}:
        return f"the origin {origin} is not this one"
    is_unsafe = method not in SAFE_METHODS
    site = headers.get("sec-fetch-site", "same-origin")
    if (is_unsafe or is_stream) and site not in {"same-origin", "none"}:
        return f"the request comes from another site (Sec-Fetch-Site: {site})"
    if is_unsafe and has_cookie and origin is None:
        return "a request with a cookie that changes something needs the header Origin"
    return ""
