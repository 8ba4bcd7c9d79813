"""Numbered records through state and windows into tables; for `postgres_crash`."""

from pathlib import Path

import gearpy as gp
from tests.bench.numbered import numbered_app


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args``: folder of results, records per second, database."""
    folder, rate, url = args

    def sink(place: Path) -> gp.Sink:
        if place.name == "windows":
            upsert = ["word", "window_start"]
            return gp.postgres_sink(url, place.name, key="word", upsert=upsert, create=True)
        return gp.postgres_sink(url, place.name, create=True)

    return numbered_app(Path(folder), rate=float(rate), sink=sink)
