"""Sources and sinks of one method, and connectors of other packages."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from gearpy.testing import Simulation, check_sink, check_source


class Pages(gp.SimpleSource[int]):
    """Pages of a service that numbers what it has; each second answer is empty at first."""

    bounded = True
    pause = "1ms"

    def __init__(self, records: int = 50) -> None:
        self.records = records

    def read(self, position: int | None) -> Iterator[tuple[int, int] | None]:
        for number in range(position or 0, self.records):
            if number % 2:
                yield None
            yield number, number + 1


class Dated(Pages):
    out_of_order = "2ms"

    def timestamp(self, record: int) -> int:
        return record ^ 1  # 1, 0, 3, 2, ...


class Shelf(gp.SimpleSink[dict[str, Any]]):
    idempotent = True

    def __init__(self, place: dict[int, Any]) -> None:
        self.place = place

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        self.place.update((record["n"], record) for record in records)


def test_a_source_keeps_what_gearpy_relies_on() -> None:
    check_source(Pages)


def test_a_source_with_event_times_does_too() -> None:
    check_source(Dated)


def test_a_sink_keeps_what_gearpy_relies_on() -> None:
    places: dict[str, dict[int, Any]] = {}
    check_sink(
        lambda name: Shelf(places.setdefault(name, {})),
        lambda name: places.setdefault(name, {}).values(),
    )


def test_nothing_more_is_asked_for_a_while_when_nothing_has_come() -> None:
    asked = 0

    class Empty(gp.SimpleSource[int]):
        def read(self, position: Any) -> Iterator[tuple[int, Any] | None]:
            nonlocal asked
            while True:
                asked += 1
                yield None

    reader = Empty().open("0", None)

    assert reader.read_batch(1024) is None
    assert (asked, reader.pause_ms, reader.finished) == (1, 100, False)


def test_a_task_starts_flushes_and_closes_its_own_copy() -> None:
    calls: list[Any] = []

    class Sink(gp.SimpleSink[int]):
        def start(self) -> None:
            assert not hasattr(self, "connection")
            self.connection = object()
            calls.append("start")

        def write(self, records: Sequence[int]) -> None:
            calls.append(list(records))

        def flush(self) -> None:
            calls.append("flush")

        def close(self) -> None:
            calls.append("close")

    app = gp.StreamApp("copies")
    app.read(gp.collection([1])).write(Sink())
    Simulation(app).run()

    assert calls[:2] == ["start", [1]]
    assert calls[-2:] == ["flush", "close"]


@pytest.mark.parametrize("odd", [5, (1, 2, 3), "ab", [1, 2]])
def test_what_is_no_pair_is_refused_with_its_text(odd: Any) -> None:
    class Odd(gp.SimpleSource[Any]):
        def read(self, position: Any) -> Iterator[Any]:
            yield odd

    with pytest.raises(OperatorError, match=r"yield \(record, position behind it\)"):
        Odd().open("0", None).read_batch(10)


def test_an_exception_names_the_method() -> None:
    class Broken(gp.SimpleSource[int]):
        def read(self, position: Any) -> Iterator[tuple[int, Any]]:
            yield 1, 1
            raise ValueError("no such page")

    with pytest.raises(OperatorError, match=r"'Broken.read': ValueError: no such page"):
        Broken().open("0", None).read_batch(10)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gearpy_shelves.py").write_text("def shelf(name):\n    return f'shelf {name}'\n")
    info = tmp_path / "gearpy_shelves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gearpy-shelves\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gearpy.connectors]\nshelf = gearpy_shelves:shelf\nlost = gearpy_shelves:nowhere\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gearpy_shelves", raising=False)


@pytest.mark.usefixtures("package")
def test_another_package_offers_a_connector() -> None:
    assert gp.connector("shelf")("top") == "shelf top"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shelfs", r"did you mean 'shelf'\? \(there are: lost, shelf\); install the package"),
        ("lost", r"'lost' \(gearpy_shelves:nowhere\) cannot be imported: AttributeError"),
    ],
)
def test_a_connector_that_is_not_there_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        gp.connector(name)
