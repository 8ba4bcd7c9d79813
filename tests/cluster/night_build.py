"""A run that reads what is new, in the working folder, and what it has written there."""

import json
from pathlib import Path
from typing import Any, Final

import gearpy as gp
from gearpy.cluster.embedded.run import EMBEDDED
from gearpy.config.load import load
from gearpy.messages.summaries import ApplicationSummary

CONFIG: Final = load(env={}, overrides={"checkpoint.interval-ms": "100"}, defaults=EMBEDDED)


def night(app: gp.StreamApp) -> ApplicationSummary:
    summary = gp.run(app, until="caught-up", checkpoint="run", config=CONFIG)
    assert (summary.status, summary.outcome) == ("succeeded", "caught up")
    return summary


def shown(out: str = "out") -> list[Any]:
    lines = (each for file in Path(out).glob("*.jsonl") for each in file.read_text().splitlines())
    return sorted((json.loads(line) for line in lines), key=str)
