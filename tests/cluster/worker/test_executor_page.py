"""The page of metrics of an executor: what it shows, and to whom."""

import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from gearpy.actor.api import Ref
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.measured import process_pages
from gearpy.cluster.worker.executor_page import executor_page
from gearpy.config.schema import Config
from gearpy.ids import ActorPath, AppId, ExecutorId
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.transport.security.certificates import make_authority_and_node
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.eventually import eventually

Configured = Callable[..., Config]
_LONG_S = 60


@contextmanager
def shown(config: Config) -> Iterator[str]:
    """Show the page of an executor that is being started; give its address."""
    launch = LaunchExecutor(
        app_id=AppId(1),
        executor_id=ExecutorId(2),
        launch=3,
        app_master=1,
        slots=1,
        name="shop",
        artifact=Artifact(kind="file", location="shop.py"),
        executors=1,
        config={},
        reply_to=ActorPath("", "app1"),
    )
    with executor_page(config, launch, Future[Ref[Any]]()) as address:
        yield address


def status_of(address: str, token: str = "", known: ssl.SSLContext | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"http{'s' if known else ''}://{address}/metrics"
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - of this machine
    try:
        with urllib.request.urlopen(asked, timeout=60, context=known) as answer:  # noqa: S310
            assert b'process_threads{app="shop",process="executor2"}' in answer.read()
            status: int = answer.status
            return status
    except HTTPError as refused:
        with refused:
            return refused.code


def test_as_soon_as_there_is_a_token_everybody_needs_one(
    configured: Configured, tmp_path: Path
) -> None:
    """The same tokens as for the services; a change of their file counts at once."""
    file = TokenFile(tmp_path / "tokens")
    config = configured(services__token_file=str(file.path), metrics__executor_port=0)

    with shown(config) as address:
        assert status_of(address) == 200
        token = file.add("prometheus", TokenScope.READ, now_ms=0)
        assert [status_of(address, each) for each in (token, "", "gear_x")] == [200, 401, 401]


@pytest.mark.parametrize("place", ["hostname", "listen_host"])
def test_beyond_this_machine_there_is_no_page_without_a_token(
    configured: Configured, tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    """The executor runs all the same, and its log says why."""
    config = configured(
        **{place: "0.0.0.0"},  # noqa: S104 - nothing is said there
        services__token_file=str(tmp_path / "tokens"),
        metrics__executor_port=0,
    )

    with shown(config) as address:
        assert address == ""

    assert "shows no metrics: 0.0.0.0 can be reached from other machines" in caplog.text


def test_the_page_is_where_the_executor_listens(configured: Configured, tmp_path: Path) -> None:
    config = configured(
        hostname="elsewhere.invalid",
        listen_host="127.0.0.1",
        services__token_file=str(tmp_path / "tokens"),
        metrics__executor_port=0,
    )

    with shown(config) as address:
        host, _, port = address.rpartition(":")
        assert (host, status_of(f"127.0.0.1:{port}")) == ("elsewhere.invalid", 200)


def test_the_page_has_tls_where_the_cluster_has(configured: Configured, tmp_path: Path) -> None:
    """Who knows the authority shows no certificate; who speaks HTTP is not heard, or in the way."""
    make_authority_and_node(tmp_path / "certs", [], days=2)
    config = configured(
        services__token_file=str(tmp_path / "tokens"),
        metrics__executor_port=0,
        transport__tls="on",
        transport__tls_folder=str(tmp_path / "certs"),
    )
    known = ssl.create_default_context(cafile=str(tmp_path / "certs" / "ca.crt"))

    with shown(config) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60):  # It says nothing.
            assert status_of(address, known=known) == 200
        with pytest.raises(OSError, match=r"."):
            status_of(address)
        assert status_of(address, known=known) == 200


#: Reads without end.
PROGRAM = """\
import itertools
import gearpy as gp

app = gp.StreamApp("numbers")
numbers = app.read(gp.generate(itertools.count, rate=200))
numbers.key_by(lambda n: n % 3).count().write(gp.to_list([]))
"""


def test_the_page_of_an_executor_is_found_and_has_its_part(
    configured: Configured, tmp_path: Path
) -> None:
    """Tasks and the process; nothing of the application as a whole, which the services show."""
    program = tmp_path / "numbers.py"
    program.write_text(PROGRAM, encoding="utf-8")
    folders = {f"{each}__folder": str(tmp_path / each) for each in ("log", "worker", "checkpoint")}
    config = configured(
        **folders, services__token_file=str(tmp_path / "tokens"), metrics__executor_port=0
    )
    with LocalCluster(config, executors="process") as cluster:
        running = cluster.client.submit("numbers", Artifact(kind="file", location=str(program)))
        page = eventually(lambda: next(process_pages(cluster.client), None), within_s=_LONG_S)
        taken = 'gearpy_records_in_total{app="numbers",processor="1",task="1.0"}'
        shown = eventually(lambda: text_with(taken, page.address), within_s=_LONG_S)
        running.shutdown()

    assert (page.process, page.app, page.app_id) == ("executor0", "numbers", running.app_id)
    assert 'process_resident_memory_bytes{app="numbers",process="executor0"}' in shown
    assert 'gearpy_queue_records{app="numbers",processor="1",task="1.0"}' in shown
    of_all = ("gearpy_processor_info", "gearpy_checkpoints_total", "gearpy_workers")
    assert not [name for name in of_all if name in shown]


def text_with(part: str, address: str) -> str:
    """Return the text of a page if it has a part, else an empty one."""
    url = f"http://{address}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=_LONG_S) as answer:
            text: str = answer.read().decode()
    except HTTPError as refused:  # The executor has not answered in time.
        refused.close()
        return ""
    return text if part in text else ""
