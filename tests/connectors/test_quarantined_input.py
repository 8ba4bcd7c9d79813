"""Bad input that goes into quarantine: what is kept of it, and that the rest is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.testing import Simulation

FORMS: dict[str, tuple[str, Callable[[Path], gp.Source[Any]]]] = {
    "csv": ("n\n1\nx\n3\n", lambda file: gp.csv(file, schema={"n": int}, on_bad="quarantine")),
    "jsonl": (
        '{"n": 1}\n{"n": "x"}\n{"n": 3}\n',
        lambda file: gp.jsonl(file, schema={"n": int}, on_bad="quarantine"),
    ),
    "jsonl rows": (
        '{"n": 1}\n{"n": x}\n{"n": 3}\n',
        lambda file: gp.jsonl(file, rows=True, on_bad="quarantine"),
    ),
    "files": (
        "1\nx\n3\n",
        lambda file: gp.files(file, parse=lambda line: {"n": int(line)}, on_bad="quarantine"),
    ),
    "files with times": (
        "1\nx\n3\n",
        lambda file: gp.files(file, timestamp=int, on_bad="quarantine"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_bad_line_is_kept_with_its_place(tmp_path: Path, form: str) -> None:
    text, source_of = FORMS[form]
    (file := tmp_path / "file.txt").write_text(text)
    app, results = gp.StreamApp("lines"), list[Any]()
    app.read(source_of(file)).write(gp.to_list(results))
    simulation = Simulation(app)

    simulation.run()

    assert results == (["1", "3"] if form == "files with times" else [{"n": 1}, {"n": 3}])
    ((_, kept),) = simulation.quarantined
    assert "x" in kept.error.record
    assert str(file) in kept.error.cause
    assert kept.value == b""


def test_bad_rows_of_a_run_are_counted_once(tmp_path: Path) -> None:
    """Under a policy of the application that would end it for what functions raise."""
    pq.write_table(pa.table({"n": ["1", "x", "3"]}), tmp_path / "n.parquet")
    app, results = gp.StreamApp("rows"), list[Any]()
    numbers = gp.parquet(tmp_path / "n.parquet", schema={"n": int}, on_bad="quarantine")
    app.read(numbers).write(gp.to_list(results))

    done = gp.run(app, checkpoint=tmp_path / "run")

    assert results == [{"n": 1}, {"n": 3}]
    assert (done.progress.quarantined_records, done.progress.skipped_records) == (1, 0)
    assert done.progress.records_in == 2


def test_another_word_is_refused() -> None:
    with pytest.raises(gp.ConfigError, match="must be one of fail, skip, quarantine, side"):
        gp.csv("x.csv", on_bad="aside")  # type: ignore[arg-type]
