"""A browser, and a cluster whose executors are processes, with its services."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from gearpy.cluster.boot.local import LocalCluster
from gearpy.services.server import Services
from tests.services.conftest import PLENTY, a_config

#: Nothing of it talks to other machines.
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_MS: Final = 60_000

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
            yield "? " + str(number) if number == 300 else LINES[number % 3]

    def words_of(line):
        if line.startswith("?") and broken.exists():
            raise ValueError("cannot split " + line)
        return line.split()

    app = gp.StreamApp("wordcount")
    words = app.read(gp.generate(lines, rate=1000), name="lines").flat_map(words_of, name="split")
    counts = words.key_by(lambda word: word, parallelism=2).window(gp.tumbling("1s")).count()
    counts.map(lambda row: [row.key, row.value], name="row").write(gp.jsonl_folder(args[1]))
    return app
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A page that is looked at, and what it has complained of."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """Open a screen."""
        self.page.goto(f"{self.url}/{address}")


# Playwright keeps an event loop running: it must end before tests with one of their own.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Start Chromium."""
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A cluster and its services."""

    cluster: LocalCluster
    services: Services
    folder: Path
    browser: Browser

    def tab(self, **options: Any) -> Tab:
        """Open a tab; errors of scripts, of the network and of the policy are complaints."""
        context = self.browser.new_context(**{"viewport": WIDE, **options})
        context.set_default_timeout(_PATIENCE_MS)
        tab = Tab(page=context.new_page(), url=self.services.url)
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.on(
            "console",
            lambda said: tab.complaints.append(said.text) if said.type == "error" else None,
        )
        return tab


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Shown]:
    """Show a cluster of two workers."""
    folder = tmp_path_factory.mktemp("page")
    keys = {"checkpoint.folder": f"{folder}/checkpoints", "worker.folder": f"{folder}/worker"}
    config = a_config(folder, **keys)
    with (
        LocalCluster(config, workers=2, slots=8, listen=True, executors="process") as cluster,
        Services(cluster.client, config, limits=PLENTY) as services,
    ):
        yield Shown(cluster=cluster, services=services, folder=folder, browser=browser)
