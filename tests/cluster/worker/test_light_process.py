"""Processes load only what they use: memory of an executor, and the time of its start."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.schema import Config
from gearpy.messages.client import Artifact

#: Packages that only some sources, sinks, stores and commands need.
HEAVY = {
    *("pyarrow", "numpy", "pandas", "fsspec", "lmdb", "pyspark", "py4j"),
    *("cryptography", "typer", "click", "rich", "grpc", "prometheus_client", "wsgiref"),
}

#: Counts words in windows; notes in the process of its tasks which modules that has loaded.
PROGRAM = """\
import json, sys
from pathlib import Path
import gearpy as gp

def note(word):
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    noted = {"modules": sorted(sys.modules), "kib": sizes}
    Path(OUT, "noted.json").write_text(json.dumps(noted))
    return word

app = gp.StreamApp("plain")
words = app.read(gp.collection([("a", 1), ("b", 2), ("a", 3)], timestamp=lambda each: each[1]))
words.key_by(lambda each: each[0]).window(gp.tumbling("1s")).count().map(note).write(
    gp.jsonl_folder(OUT + "/counts")
)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_an_executor_of_plain_rows_loads_nothing_heavy(
    configured: Callable[..., Config], tmp_path: Path
) -> None:
    program = tmp_path / "plain.py"
    program.write_text(f"OUT = {str(tmp_path)!r}\n{PROGRAM}", encoding="utf-8")
    folders = {f"{each}__folder": str(tmp_path / each) for each in ("log", "worker", "checkpoint")}

    with LocalCluster(configured(**folders), executors="process") as cluster:
        running = cluster.client.submit("plain", Artifact(kind="file", location=str(program)))
        summary = running.wait()

    noted = json.loads((tmp_path / "noted.json").read_text(encoding="utf-8"))
    assert summary.status == "succeeded"
    assert HEAVY & {name.partition(".")[0] for name in noted["modules"]} == set()
    assert noted["kib"]["Rss"] <= 50 * 1024
    assert noted["kib"]["Private_Dirty"] <= 28 * 1024
