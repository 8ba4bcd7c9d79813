"""A thousand idle connections and slow bodies leave other requests as quick as they are without."""

import asyncio
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from gearpy.services.server import Services
from tests.eventually import eventually
from tests.services.conftest import API, PLENTY, Served, a_config

_IDLE = 1000
_SLOW = 50
_ASKED = 200
#: Of services that have more connections and of those without: a look at each of them would show.
_SLOWER_MAX = 4
_TIMEOUT_S = 60
_SLOW_HEAD = (
    f"POST {API}/appmaster/1/quarantine/replay HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
).encode()


def connections(url: str, number: int, stack: ExitStack) -> list[socket.socket]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return [
        stack.enter_context(socket.create_connection((parts.hostname, parts.port or 0), 20))
        for _ in range(number)
    ]


@pytest.fixture
def limited(served: Served, tmp_path: Path) -> Iterator[Services]:
    """Serve the cluster with short patience, and room for few connections."""
    limits = replace(PLENTY, idle_s=0.3, stall_s=0.3, send_s=0.3, connections_max=20)
    config = a_config(tmp_path)
    with Services(served.cluster.client, config, limits=limits, needs_token=False) as services:
        yield services


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        return connection.recv(65536) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.long  # It compares times.
def test_others_are_answered_as_quickly(served: Served, tmp_path: Path) -> None:
    """With a thousand connections that ask for nothing, and some that send a byte at a time.

    As quickly as by services without these, which are asked in turns, since machines differ, and
    so do moments.
    """
    stopped = threading.Event()

    def dribble() -> None:
        while not stopped.wait(0.05):
            for each in slow:
                each.send(b" ")

    patient = replace(PLENTY, idle_s=600, stall_s=600)  # However long this takes.
    with ExitStack() as stack:
        busy, free = (
            stack.enter_context(
                Services(
                    served.cluster.client, a_config(tmp_path), limits=patient, needs_token=False
                )
            )
            for _ in range(2)
        )
        among_many, alone = (
            stack.enter_context(httpx.Client(base_url=each.url, timeout=_TIMEOUT_S))
            for each in (busy, free)
        )
        connections(busy.url, _IDLE, stack)
        slow = connections(busy.url, _SLOW, stack)
        for each in slow:
            each.send(_SLOW_HEAD)
        thread = threading.Thread(target=dribble)
        thread.start()
        stack.callback(thread.join)
        stack.callback(stopped.set)
        took = [(seconds_of(among_many), seconds_of(alone)) for _ in range(_ASKED)]

    many_s, alone_s = map(statistics.median, zip(*took, strict=True))
    assert many_s < _SLOWER_MAX * alone_s


def seconds_of(client: httpx.Client) -> float:
    begun_s = time.perf_counter()
    assert client.get(f"{API}/appmaster/1").status_code == 200
    return time.perf_counter() - begun_s


def test_idle_connections_end(limited: Services) -> None:
    with ExitStack() as stack:
        idle, dribbling = connections(limited.url, 2, stack)

        def both_are_closed() -> bool:
            try:
                dribbling.send(b"G")
            except ConnectionError:
                return is_closed(idle)
            return is_closed(idle) and is_closed(dribbling)

        eventually(both_are_closed, within_s=_TIMEOUT_S)


def test_a_slow_body_is_given_up(limited: Services) -> None:
    def is_told() -> bool:
        with ExitStack() as stack:
            (slow,) = connections(limited.url, 1, stack)
            slow.settimeout(_TIMEOUT_S)
            with suppress(ConnectionError):
                slow.send(_SLOW_HEAD)
                return slow.recv(65536).startswith(b"HTTP/1.1 408 ")
        return False

    eventually(is_told, within_s=_TIMEOUT_S)


def test_a_client_that_does_not_read_is_given_up(limited: Services) -> None:
    """What waits for it would stay in memory, and its stream of events open."""
    asked = f"GET /vendor/uplot.js HTTP/1.1\r\nHost: {urlsplit(limited.url).netloc}\r\n\r\n"
    with ExitStack() as stack:
        (deaf,) = connections(limited.url, 1, stack)
        deaf.settimeout(1)

        def is_given_up() -> bool:
            try:
                deaf.sendall(asked.encode() * 100)
            except TimeoutError:
                return False
            except ConnectionError:
                return True
            return False

        eventually(is_given_up, within_s=_TIMEOUT_S)


def test_there_are_so_many_connections_at_most(limited: Services) -> None:
    """Further ones are closed at once; those that are there go on."""
    with ExitStack() as stack:
        opened = connections(limited.url, 40, stack)

        eventually(lambda: sum(map(is_closed, opened)) >= 20, within_s=_TIMEOUT_S)

    def is_answered() -> bool:
        with suppress(httpx.TransportError):  # It has not seen yet that the others are gone.
            return httpx.get(f"{limited.url}/version", timeout=_TIMEOUT_S).status_code == 200
        return False

    eventually(is_answered, within_s=_TIMEOUT_S)


def test_bodies_have_a_size(served: Served, tmp_path: Path) -> None:
    with Services(
        served.cluster.client, a_config(tmp_path), limits=PLENTY, needs_token=False
    ) as services:
        post = f"{services.url}{API}/master/submitdag"
        answer = httpx.post(post, content=b"x" * (2 << 20), timeout=_TIMEOUT_S)

    assert answer.status_code == 413
    assert answer.json()["error"] == "a body has at most 1048576 bytes here"


def test_there_are_so_many_viewers_at_most(served: Served, tmp_path: Path) -> None:
    async def run(url: str) -> list[int]:
        async with (
            asyncio.timeout(2 * _TIMEOUT_S),
            httpx.AsyncClient(base_url=url, timeout=_TIMEOUT_S) as http,
            http.stream("GET", f"{API}/events") as first,
            http.stream("GET", f"{API}/events") as second,
        ):
            lines = [first.aiter_lines(), second.aiter_lines()]  # Forgotten ones close streams.
            for each in lines:
                await anext(each)
            third = await http.get(f"{API}/events")
            return [first.status_code, second.status_code, third.status_code]

    limits = replace(PLENTY, viewers_max=2)
    with Services(
        served.cluster.client, a_config(tmp_path), limits=limits, needs_token=False
    ) as services:
        assert asyncio.run(run(services.url)) == [200, 200, 429]


def test_too_many_requests_are_refused(served: Served, tmp_path: Path) -> None:
    limits = replace(PLENTY, changes_per_s=0.01, changes_burst=2)
    config = a_config(tmp_path)
    with Services(served.cluster.client, config, limits=limits, needs_token=False) as services:
        post = f"{services.url}{API}/appmaster/99/drain"
        answers = [httpx.post(post, timeout=_TIMEOUT_S) for _ in range(3)]
        assert [each.status_code for each in answers] == [404, 404, 429]
        assert int(answers[2].headers["retry-after"]) > 1
        asked = httpx.get(f"{services.url}{API}/master", timeout=_TIMEOUT_S)
        assert asked.status_code == 200
