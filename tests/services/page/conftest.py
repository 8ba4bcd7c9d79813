"""A browser, and a cluster whose executors are processes, with its services."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from gearpy.cluster.boot.local import LocalCluster
from gearpy.services.server import Services
from tests.services.conftest import PLENTY, a_config

#: Nothing of it talks to other machines.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A process for each that is looked at, and no other: to start them is most of the cost.
    "--in-process-gpu",
    "--renderer-process-limit=1",
    "--disable-features=SpareRendererForSitePerProcess",
)
_PATIENCE_MS: Final = 180_000
#: Answers that say how the cluster is, such as that a task starts: the page shows them.
_OF_THE_CLUSTER: Final = ("status of 409", "status of 503")

WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}
NARROW: Final[ViewportSize] = {"width": 400, "height": 800}

#: Counts words for ever. Lines with a mark cannot be split as long as a file is there.
WORD_COUNT: Final = """
import itertools
from pathlib import Path
import gearpy as gp

LINES = ["the quick brown fox", "jumps over the lazy dog", "and the dog sleeps"]

def main(args):
    broken = Path(args[0])

    def lines():
        for number in itertools.count():
            yield "? " + str(number) if number == 20 else LINES[number % 3]

    def words_of(line):
        if line.startswith("?") and broken.exists():
            raise ValueError("cannot split " + line)
        return line.split()

    app = gp.StreamApp("wordcount")
    words = app.read(gp.generate(lines, rate=20), name="lines").flat_map(words_of, name="split")
    counts = words.key_by(lambda word: word, parallelism=2).window(gp.tumbling("1s")).count()
    counts.map(lambda row: [row.key, row.value], name="row").write(gp.jsonl_folder(args[1]))
    return app
"""

#: Reads faster than one of its steps can follow, and has bad lines of two kinds.
SLOW: Final = """
import time
import gearpy as gp

def parse(line):
    return int(line) if line != "none" else {}[line]

def ask(number):
    time.sleep(0.004)
    return number

app = gp.StreamApp("shop")
lines = [*map(str, range(97)), "n/a", "n/b", "none"]
numbers = app.read(gp.generate(lambda: iter(lines * 1000), rate=2000), name="orders").map(parse)
numbers.repartition(1).map(ask, name="ask").write(gp.to_list([]))
"""

#: Fails with its first record.
FAILS: Final = """
import gearpy as gp

app = gp.StreamApp("broken")
app.read(gp.collection([1])).map(lambda n: n // 0, name="divide").write(gp.to_list([]))
"""

#: Gives back what it is asked.
ANSWERS: Final = """
import gearpy as gp

class Answers(gp.AppMaster):
    def on_question(self, question):
        return {"asked": question}

app = gp.ActorApp("answers", master=Answers, executor=gp.AppExecutor)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """Open a screen; returns when it is the one that is drawn."""
        self.page.goto(f"{self.url}/{address}")
        self.page.locator(f'main[data-at="{address}"]').wait_for()

    @classmethod
    def of(cls, browser: Browser, url: str, **options: Any) -> Self:
        context = browser.new_context(**{"viewport": WIDE, **options})
        context.set_default_timeout(_PATIENCE_MS)
        tab = cls(page=context.new_page(), url=url)
        tab.listen()
        return tab

    def listen(self) -> None:
        """Take what scripts, the network and the policy say from now on as complaints."""
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if _is_complaint(said) else None,
        )


def _is_complaint(said: ConsoleMessage) -> bool:
    is_known = "/api/" in said.location["url"] and any(
        each in said.text for each in _OF_THE_CLUSTER
    )
    return said.type == "error" and not is_known


class Gate:
    """An address that stays while the services behind it end and others begin."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._port = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def lead_to(self, services: Services | None) -> None:
        """Pass connections on to these services; without any, end them at once."""
        self._port = int(services.url.rpartition(":")[2]) if services else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller, suppress(OSError):
            if not self._port:
                return
            with socket.create_connection(("127.0.0.1", self._port)) as server:
                back = threading.Thread(target=_carry, args=(server, caller), daemon=True)
                back.start()
                _carry(caller, server)
                back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


# Playwright keeps an event loop running: it must end before tests with one of their own.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    cluster: LocalCluster
    services: Services
    folder: Path
    browser: Browser

    def tab(self, **options: Any) -> Tab:
        return Tab.of(self.browser, self.services.url, **options)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("page")
    keys = {
        "checkpoint.folder": f"{folder}/checkpoints",
        "worker.folder": f"{folder}/worker",
        "checkpoint.interval-ms": "500",
    }
    config = a_config(folder, **keys)
    with (
        LocalCluster(config, workers=2, slots=8, listen=True, executors="process") as cluster,
        Services(cluster.client, config, limits=PLENTY, needs_token=False) as services,
    ):
        yield Shown(cluster=cluster, services=services, folder=folder, browser=browser)
