"""What an app master tells about its application."""

from pathlib import Path

import gearpy as gp
from gearpy.cluster.app.describe import detail_of, path_lines
from gearpy.ids import AppId
from gearpy.messages.summaries import ErrorCard, Failure


def test_each_path_has_its_guarantee(tmp_path: Path) -> None:
    """With what keeps it from being exactly-once, and what to do."""
    app = gp.StreamApp("paths")
    numbers = app.read(gp.collection([1, 2]))
    numbers.write(gp.jsonl_folder(tmp_path / "out"))
    numbers.write(gp.console())

    good, weak = path_lines(app.build())

    source = "collection(2 values)"
    assert good == f"{source} -> jsonl_folder({tmp_path / 'out'}): exactly-once"
    assert weak.startswith(f"{source} -> console: at-least-once: console writes again after")
    assert weak.endswith("write to a transactional sink, such as jsonl_folder or parquet_folder")


def test_an_application_that_begins_has_guarantees_and_failures_only() -> None:
    failure = Failure(at_ms=1, what="it", error=ErrorCard(cause="why"))

    detail = detail_of(
        AppId(1),
        None,
        [failure],
        now_ms=0,
        guarantees=("a -> b",),
        fallbacks={},
        scaled=(),
        stored_ms=lambda *_: 0,
    )

    assert (detail.failures, detail.guarantees) == ((failure,), ("a -> b",))
    assert (detail.epochs, detail.processors) == ((), ())
