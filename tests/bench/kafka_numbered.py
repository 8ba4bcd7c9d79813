"""Numbered records through state and windows into topics; the program of `kafka_crash`."""

from pathlib import Path
from typing import Any

import gearpy as gp
from tests.bench.numbered import numbered_app

__all__ = ["main"]


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args``: folder of results, records per second, brokers."""
    folder, rate, servers = args

    def sink(place: Path) -> gp.Sink:
        return gp.kafka_sink(place.name, servers=servers, key=_key)

    return numbered_app(Path(folder), rate=float(rate), sink=sink)


def _key(result: Any) -> str:
    """Return the key of a record, a sum or a window."""
    if isinstance(result, dict):
        return str(result["key"] if "key" in result else result["group"])
    return str(result.key)
