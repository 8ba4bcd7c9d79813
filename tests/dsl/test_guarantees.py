"""What flows of the stream language promise, from the sources and sinks that come with gearpy."""

from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.task.stages.guarantees import guarantee_lines, guarantees_of
from gearpy.testing import ManualSource


def lines(app: gp.StreamApp) -> list[str]:
    return list(guarantee_lines(guarantees_of(app.build())))


def counting(sink: gp.Sink, source: gp.Source | None = None) -> gp.StreamApp:
    app = gp.StreamApp("words")
    words = app.read(source or gp.collection(["to", "be"]))
    counts = words.flat_map(str.split).key_by(lambda word: word).window(gp.tumbling("1s")).count()
    counts.map(lambda each: {"n": each.value}).write(sink)
    return app


@pytest.mark.parametrize("make", [gp.jsonl_folder, gp.parquet_folder])
def test_folders_are_exactly_once(make: Any) -> None:
    assert lines(counting(make("out"))) == ["exactly-once"]


def test_requests_are_at_least_once_with_a_key() -> None:
    (line,) = lines(counting(gp.http_sink("http://host/hook")))
    assert line == (
        "at-least-once: http_sink(http://host/***) sends again after a failure what it was sending,"
        " with the same Idempotency-Key; let the receiver leave out what it has had"
    )


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (gp.console(), "at-least-once: console writes again after a failure"),
        (gp.to_list([]), "at-least-once: to_list writes again after a failure"),
        (gp.text_file("a.txt"), "effectively-once: text_file(a.txt) takes back after a failure"),
        (gp.jsonl_file("a.jsonl"), "effectively-once: jsonl_file(a.jsonl) takes back"),
        (gp.text_file("a.txt", append=True), "at-least-once: text_file(a.txt) writes again"),
    ],
)
def test_other_sinks_are_weaker(sink: gp.Sink, said: str) -> None:
    (line,) = lines(counting(sink))

    assert line.startswith(said)


def test_a_source_that_cannot_be_read_again_loses(tmp_path: Path) -> None:
    (line,) = lines(counting(gp.jsonl_folder("out"), ManualSource()))

    assert line.startswith("at-most-once: ")


def test_a_processor_between_flows_counts() -> None:
    class Total(gp.Task):
        total = 0

        def on_next(self, message: gp.Message) -> None:
            self.total += message.value

    app = gp.StreamApp("total")
    app.read(gp.collection([1])).process(Total).write(gp.jsonl_folder("out"))

    (line,) = lines(app)

    assert line.startswith("not known: ")
    assert "has no snapshot" in line


def test_two_folders_must_not_be_one() -> None:
    """Each sink would remove the files of the other; a prefix tells them apart."""
    app = gp.StreamApp("twice")
    numbers = app.read(gp.collection([1]))
    numbers.write(gp.jsonl_folder("out"))
    numbers.map(str).write(gp.jsonl_folder("out"))

    with pytest.raises(gp.ConfigError, match=r"2 sinks write to jsonl_folder\(out\): give each"):
        app.build()

    other = gp.StreamApp("apart")
    numbers = other.read(gp.collection([1]))
    numbers.write(gp.jsonl_folder("out"))
    numbers.map(str).write(gp.jsonl_folder("out", prefix="text"))
    assert lines(other) == ["exactly-once"]
