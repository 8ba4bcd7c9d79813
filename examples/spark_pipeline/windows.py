"""The stream: clicks become windows, sessions and lists of favourites, as they come.

    bin/gear run examples/spark_pipeline/windows.py -- --out clicks

reads ``clicks/events/*.jsonl`` and writes into ``clicks/logs`` a window log of

- ``pages``: what each page came to in each 10 s,
- ``sessions``: what each user did without a pause of half an hour,
- ``top``: the ten pages of each hour that were looked at most,
- ``late``: clicks that came more than 30 s after newer ones, for whom windows did not wait,

and into ``clicks/quarantine`` the lines that are no clicks, with the reason.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clicks import Click, is_click, parse, time_of

import gearpy as gp

__all__ = ["LATE_AFTER", "LOGS", "PAUSE", "TOP", "WINDOW", "build", "main"]

WINDOW: Final = "10s"
PAUSE: Final = "30m"
LATE_AFTER: Final = "30s"
TOP: Final = 10

#: The window logs, as folders of ``logs``.
LOGS: Final = ("pages", "sessions", "top", "late")


def build(out: Path) -> gp.StreamApp:
    """Build the application over the files of a folder."""
    app = gp.StreamApp("clicks")
    source = gp.files(out / "events" / "*.jsonl", timestamp=time_of, out_of_order=LATE_AFTER)
    # By the source, not by the windows: what is late then follows from the files alone.
    lines = app.read(source, late="side", name="lines")
    clicks, bad = lines.map(parse, name="parse").split(is_click)
    # A line without a time is older than any other, so it is found here.
    late, late_bad = lines.late.map(parse, name="parse late").split(is_click)

    pages = by_page(clicks)
    logs = out / "logs"
    logs.mkdir(exist_ok=True)
    pages.write(gp.window_log_folder(logs / "pages", key=("page",)))
    by_visit(clicks).write(gp.window_log_folder(logs / "sessions", key=("user",)))
    favourites(pages).write(gp.window_log_folder(logs / "top", key=("rank",)))
    # Without a schema there would be no log to read as long as nothing is late.
    late.write(gp.window_log_folder(logs / "late", schema=Click))
    bad.merge(late_bad).write(gp.jsonl_folder(out / "quarantine"))
    return app


def by_page(clicks: gp.Stream[Any]) -> gp.Stream[Any]:
    """Return what each page came to in each 10 s."""
    return (
        clicks.key_by("page")
        .window(gp.tumbling(WINDOW))
        .aggregate(
            clicks=gp.agg.count(),
            purchases=gp.agg.sum(bought),
            cents=gp.agg.sum("cents"),
            users=gp.agg.distinct("user"),
        )
    )


def by_visit(clicks: gp.Stream[Any]) -> gp.Stream[Any]:
    """Return what each user did until a pause."""
    return (
        clicks.key_by("user")
        .window(gp.session(PAUSE))
        .aggregate(
            clicks=gp.agg.count(),
            purchases=gp.agg.sum(bought),
            cents=gp.agg.sum("cents"),
            pages=gp.agg.distinct("page"),
        )
    )


def favourites(pages: gp.Stream[Any]) -> gp.Stream[Any]:
    """Return the pages of each hour with the most clicks; of equal ones the last by name."""
    hourly = (
        pages.key_by(lambda window: window.key)
        .window(gp.tumbling("1h"))
        .sum(lambda window: window.value["clicks"])
    )
    top = hourly.window(gp.tumbling("1h")).top_n(TOP, lambda page: (page.value, page.key))
    return top.flat_map(ranked)


def ranked(hour: gp.WindowResult[None, list[Any]]) -> Iterator[gp.WindowResult[int, Any]]:
    """Yield the pages of a list as results of their own, whose keys are their ranks."""
    for rank, page in enumerate(hour.value, start=1):
        value = {"page": page.key, "clicks": page.value}
        yield gp.WindowResult(rank, value, hour.start, hour.end)


def bought(click: Click) -> int:
    """Return 1 for a purchase."""
    return int(click.kind == "purchase")


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="windows.py", description="Make windows of clicks.")
    parser.add_argument("--out", type=Path, default=Path("clicks"), metavar="FOLDER")
    return build(parser.parse_args(args).out)


if __name__ == "__main__":
    gp.run(main)
