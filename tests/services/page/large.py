"""What the page costs a browser, with a thousand tasks and a hundred applications that are real.

It prints a line for each screen, after some minutes::

    .venv/bin/python -m tests.services.page.large

A long task is one of the browser's that lasts for more than 50 ms: it is felt from 100 ms on.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.sync_api import Page, sync_playwright

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.services.server import Services
from tests.eventually import eventually
from tests.servers import programs
from tests.services.conftest import PLENTY, a_config
from tests.services.page.conftest import FLAGS, WIDE

_TASKS: Final = 1_000
_APPLICATIONS: Final = 100
_START_S: Final = 1_800.0
_WATCHED_S: Final = 20.0
_SCROLLS_PER_S: Final = 2
_SCREENS: Final = {
    "overview": "#/",
    "applications": "#/apps",
    "graph": "#/app/1",
    f"step of {_TASKS - 1} tasks": "#/app/1/step/1",
}
#: Notes tasks of the browser that take long, and how many elements change.
_WATCH: Final = """
globalThis.seen = {long: [], changes: 0};
new PerformanceObserver((list) => seen.long.push(...list.getEntries().map((each) => each.duration)))
  .observe({type: "longtask"});
new MutationObserver((list) => { seen.changes += list.length; })
  .observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
"""


class Watched(NamedTuple):
    """A screen that was looked at for a while: what it cost the browser each second."""

    rows: int
    long_ms: list[float]
    changes: float
    busy: float
    script: float
    layout: float
    received_bytes: float

    def __str__(self) -> str:
        longest = [round(each) for each in sorted(self.long_ms, reverse=True)[:5]]
        return (
            f"{self.rows} rows drawn, busy {self.busy:.1%} (scripts {self.script:.1%}, layout "
            f"{self.layout:.1%}), {self.received_bytes / 1000:.1f} kB/s, {self.changes:.0f} "
            f"changes/s, {len(self.long_ms)} long tasks: {longest} ms"
        )


@contextmanager
def _shown(folder: Path) -> Iterator[str]:
    """Run one large application and many small ones; give the address of the page."""
    config = a_config(folder, **{"checkpoint.interval-ms": "30000"})
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(config, workers=2, slots=2 * _TASKS))
        services = stack.enter_context(
            Services(cluster.client, config, limits=PLENTY, needs_token=False)
        )
        small = (_small(number) for number in range(_APPLICATIONS - 1))
        for app in (_large(), *small):
            stack.enter_context(cluster.submitted(app, executors=1))
        eventually(
            lambda: {each.status for each in cluster.client.applications()} == {"active"},
            within_s=_START_S,
        )
        yield services.url


def _large() -> gp.StreamApp:
    app = gp.StreamApp("large")
    numbers = app.read(gp.generate(itertools.count, rate=2_000), name="numbers")
    counts = numbers.key_by(lambda n: n % 5_000, parallelism=_TASKS - 1).count()
    counts.filter(lambda _: False, name="none").write(gp.to_list([]))
    return app


def _small(number: int) -> gp.StreamApp:
    app = gp.StreamApp(f"small-{number}")
    app.read(gp.generate(itertools.count, rate=1)).write(gp.to_list([]))
    return app


def _watched(page: Page, address: str) -> Watched:
    session, received = page.context.new_cdp_session(page), list[float]()
    session.send("Performance.enable")
    session.send("Network.enable")
    session.on("Network.dataReceived", lambda said: received.append(said["encodedDataLength"]))
    page.goto(address)
    page.locator("tbody tr").first.wait_for()
    page.wait_for_timeout(2_000)  # What opens it is not what showing it costs.
    page.evaluate("() => { seen.long = []; seen.changes = 0; }")
    received.clear()
    before = _metrics(session)
    for _ in range(int(_WATCHED_S * _SCROLLS_PER_S)):
        page.mouse.wheel(0, 120)
        page.wait_for_timeout(1_000 / _SCROLLS_PER_S)
    after, seen = _metrics(session), page.evaluate("() => seen")
    lasted_s = after["Timestamp"] - before["Timestamp"]
    used = {name: (after[name] - before[name]) / lasted_s for name in before}
    return Watched(
        rows=page.locator("tbody tr").count(),
        long_ms=seen["long"],
        changes=seen["changes"] / lasted_s,
        busy=used["TaskDuration"],
        script=used["ScriptDuration"],
        layout=used["LayoutDuration"] + used["RecalcStyleDuration"],
        received_bytes=sum(received) / lasted_s,
    )


def _metrics(session: Any) -> dict[str, float]:
    found = session.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in found}


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    begun_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        _shown(Path(folder)) as url,
        sync_playwright() as playwright,
    ):
        _tell(f"all of them run after {time.monotonic() - begun_s:.0f} s")
        browser = playwright.chromium.launch(executable_path=programs.chromium(), args=FLAGS)
        page = browser.new_context(viewport=WIDE).new_page()
        page.set_default_timeout(_START_S * 1_000)
        page.add_init_script(_WATCH)
        for name, address in _SCREENS.items():
            _tell(f"{name}: {_watched(page, f'{url}/{address}')}")
        browser.close()


if __name__ == "__main__":
    main()
