"""The examples of connectors of one's own run against real servers."""

import asyncio
import json
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_connection
from typing import Final

import pytest

import gearpy as gp
from gearpy.testing import check_source
from tests.bench.process_cluster import free_port
from tests.eventually import eventually

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


class _Answers(BaseHTTPRequestHandler):
    asked: Final[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status = 503 if self.asked.count(self.path) == 1 else 200 if self.path == "/ada" else 404
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.wfile.write(b'{"country": "UK"}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def test_names_are_looked_up_over_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        command = [sys.executable, "-m", "gearpy", "run", str(EXAMPLES / "http_lookup.py"), "--"]
        done = subprocess.run(
            [*command, url, "ada", "nobody", "ada"],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            cwd=EXAMPLES.parent,
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [(each["name"], each["found"]) for each in lines] == [
        ("ada", {"country": "UK"}),
        ("nobody", None),
        ("ada", {"country": "UK"}),
    ]
    assert sorted(_Answers.asked) == ["/ada", "/ada", "/nobody", "/nobody"]


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("nats", reason="the example of a source of one's own needs nats-py")
    program = shutil.which("nats-server", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nats-server, of Debian's package of this name, is not installed")
    port = free_port()
    server = subprocess.Popen(
        [program, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _answers(port))
        asyncio.run(_fill(f"nats://127.0.0.1:{port}"))
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    try:
        with closing(create_connection(("127.0.0.1", port), timeout=1)):
            return True
    except OSError:
        return False


async def _fill(url: str) -> None:
    import nats  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - it may be missing

    client = await nats.connect(url)
    log = client.jetstream()
    await log.add_stream(name="words", subjects=["words"])
    for number in range(40):
        await log.publish("words", f"word {number}".encode())
    await client.close()


def test_a_nats_stream_keeps_the_contract_of_a_source(stream: str) -> None:
    """Every place to go on from, kills; a server that is away is an error, not silence."""
    source: type[gp.Source[str]] = runpy.run_path(str(EXAMPLES / "nats_source.py"))["NatsStream"]
    away = f"nats://127.0.0.1:{free_port()}"

    check_source(
        lambda: source(stream, "words"),  # type: ignore[call-arg] # of the example
        records=40,
        seeds=2,
        away=lambda: source(away, "words"),  # type: ignore[call-arg]
    )
