"""The pictures of the page in the documentation: of a real cluster, in a real browser.

Taken anew, into ``docs/pictures`` or another folder, by::

    .venv/bin/python -m tests.services.page.pictures [FOLDER]

It takes three minutes, so that charts have something to show. The program in it is slower in one
step than its source is, and has keys of unequal weight.
"""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, ViewportSize, sync_playwright

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.services.server import Services
from tests.eventually import eventually
from tests.servers import programs
from tests.services.conftest import PLENTY, a_config
from tests.services.page.conftest import FLAGS, NARROW, WIDE

PICTURES: Final = Path(__file__).parents[3] / "docs" / "pictures"
_RUNS_S: Final = 130
_PATIENCE_MS: Final = 120_000

_PROGRAM: Final = """
import random
import threading
import time
import gearpy as gp

class Prices(gp.Task):
    def on_next(self, message):
        time.sleep(0.0004)  # A service that is asked, and slow.
        country, customer, amount = message.value
        return [gp.Message((customer, amount / 4.3), message.timestamp)]

def orders():
    rng = random.Random(7)
    while True:
        customer = min(int(rng.paretovariate(0.8)), 4000)
        yield f"{rng.choice('ABCD')};{customer};{rng.randint(1, 90)}"

def parse(line):
    country, customer, amount = line.split(";")
    return country, int(customer), int(amount)

def main(args):
    app = gp.StreamApp("orders")
    orders_read = app.read(gp.generate(orders, rate=6000), name="orders")
    parsed = orders_read.map(parse, name="parse")
    priced = parsed.process(Prices, parallelism=2, name="exchange rate", dispatcher="pinned")
    priced.write(gp.jsonl_folder(args[0] + "/priced"), name="priced orders")
    by_country = parsed.key_by(lambda order: order[0], parallelism=2).window(gp.tumbling("5s"))
    revenue = by_country.sum(lambda order: order[2], name="revenue / 5 s")
    revenue.write(gp.jsonl_folder(args[0] + "/revenue"), name="revenue")
    by_customer = parsed.key_by(lambda order: order[1], parallelism=8).window(gp.tumbling("5s"))
    often = by_customer.count(name="orders of a customer")
    often = often.filter(lambda row: row.value > 20, name="often")
    often.write(gp.jsonl_folder(args[0] + "/often"), name="frequent")
    return app
"""


class Picture(NamedTuple):
    name: str
    address: str
    size: ViewportSize
    theme: str
    until: str  #: The section that is the last one to be seen.


TAKEN: Final = (
    Picture("page-application", "#/app/1", WIDE, "light", "section.charts"),
    Picture("page-application-dark", "#/app/1", WIDE, "dark", "section.charts"),
    Picture("page-application-narrow", "#/app/1", NARROW, "light", "section.graph"),
    Picture("page-application-narrow-dark", "#/app/1", NARROW, "dark", "section.graph"),
    Picture("page-skew", "#/app/1/step/{skewed}", WIDE, "light", "section:has(table)"),
    Picture("page-skew-dark", "#/app/1/step/{skewed}", WIDE, "dark", "section:has(table)"),
)


@contextmanager
def _shown(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the program for a while; give the address of the page, and the skewed step."""
    program = folder / "orders.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    for name in ("revenue", "often", "priced"):
        (folder / name).mkdir()
    config = a_config(folder, **{"worker.folder": f"{folder}/worker"})
    with (
        LocalCluster(config, workers=2, slots=16, listen=True, executors="process") as cluster,
        Services(cluster.client, config, limits=PLENTY, needs_token=False) as services,
        gp.connect(cluster.address, config=config) as client,
    ):
        running = client.submit_program(str(program), [str(folder)], executors=2)
        eventually(lambda: running.summary().progress.records_in > 0, within_s=_RUNS_S)
        threading.Event().wait(_RUNS_S)
        steps = running.describe().processors
        yield services.url, next(each.processor_id for each in steps if each.parallelism > 2)


def _take(browser: Browser, url: str, picture: Picture, address: str) -> bytes:
    context = browser.new_context(viewport=picture.size, color_scheme=picture.theme)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    page.goto(f"{url}/{address}")
    page.locator(picture.until).first.wait_for()
    page.locator(".chart canvas").first.wait_for()
    page.wait_for_timeout(8000)  # Rates are known from the second view on, shares a little later.
    box = page.locator(picture.until).first.bounding_box()
    assert box is not None
    height = int(box["y"] + box["height"]) + 16
    page.set_viewport_size({"width": picture.size["width"], "height": height})
    taken = page.screenshot()
    context.close()
    return taken


def main(pictures: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        _shown(Path(folder)) as (url, skewed),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=programs.chromium(), args=FLAGS)
        for each in TAKEN:
            taken = _take(browser, url, each, each.address.format(skewed=skewed))
            (pictures / f"{each.name}.png").write_bytes(taken)
        browser.close()


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]) if sys.argv[1:] else PICTURES)
