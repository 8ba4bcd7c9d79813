"""The answers of Gearpump's routes have the fields and types that those of Gearpump 0.8.4 have.

`gearpump_answers.json` has fields and types of a real one's answers: "text", "number", "null",
lists by their first item, and "tuple" for lists whose items differ.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.services.conftest import Served

_WANTED: dict[str, Any] = json.loads(
    Path(__file__).with_name("gearpump_answers.json").read_text(encoding="utf-8")
)
_OF_METRICS = sorted(path for path in _WANTED if "/metrics/" in path)
_OTHERS = sorted(set(_WANTED) - set(_OF_METRICS))

#: Purposeful differences, by the name of the field; each is in `docs/deviations.md`.
NUMBERS_NOT_TEXT = frozenset(
    {
        *("aliveFor", "birth", "clock", "count", "death", "startTime", "submissionTime", "time"),
        *("uptime", "value"),
    }
)
#: What only an application has that has ended; the one whose answers were saved had not.
OF_ENDED = frozenset({"finishTime"})
#: A text as soon as something has failed; nothing had where the answers were saved.
OF_FAILED = frozenset({"error"})
#: Measurements of the JVM that a process of Python has not.
NOT_OF_PYTHON = frozenset(
    {
        *("memory.heap.committed", "memory.heap.max", "memory.heap.used"),
        *("memory.total.committed", "memory.total.max", "thread.daemon.count"),
    }
)


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield each place where an answer has other fields or types than the wanted shape."""
    if isinstance(wanted, dict) and "tuple" in wanted:
        yield from _list_differences(wanted["tuple"], found, path, is_tuple=True)
    elif isinstance(wanted, dict):
        yield from _object_differences(wanted, found, path)
    elif isinstance(wanted, list):
        yield from _list_differences(wanted, found, path, is_tuple=False)
    elif (kind := _kind(found)) != wanted:
        name = path.rpartition(".")[2]
        is_number = (wanted, kind) == ("text", "number") and name in NUMBERS_NOT_TEXT
        if not is_number and not ((wanted, kind) == ("null", "text") and name in OF_FAILED):
            yield f"{path} is {kind}, and {wanted} in Gearpump"


def _list_differences(wanted: list[Any], found: Any, path: str, *, is_tuple: bool) -> Iterator[str]:
    if not isinstance(found, list) or (is_tuple and len(found) != len(wanted)):
        yield f"{path} is no {'tuple' if is_tuple else 'list'}: {found}"
        return
    for place, part in enumerate(found if wanted else ()):
        each = wanted[place if is_tuple else 0]
        yield from differences(each, part, f"{path}[{place if is_tuple else ''}]")


def _object_differences(wanted: dict[str, Any], found: Any, path: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"{path} is no object: {found}"
        return
    for name in sorted((wanted.keys() ^ found.keys()) - OF_ENDED):
        yield f"{path}.{name} is {'missing' if name in wanted else 'not in Gearpump'}"
    for name in wanted.keys() & found.keys():
        yield from differences(wanted[name], found[name], f"{path}.{name}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "text"


@pytest.mark.parametrize("path", _OTHERS)
def test_an_answer_has_the_fields_of_gearpump(served: Served, path: str) -> None:
    answer = served.http.get(f"/api/v1.0/{path}")

    assert answer.status_code == 200, answer.text
    assert list(differences(_WANTED[path], answer.json())) == []


@pytest.mark.parametrize("path", _OF_METRICS)
def test_measurements_have_the_fields_of_gearpump(served: Served, path: str) -> None:
    kinds, wanted = _WANTED[path]["kinds"], set(_WANTED[path]["names"]) - NOT_OF_PYTHON
    url = f"/api/v1.0/{path}{'&' if '?' in path else '?'}readOption="
    eventually(lambda: wanted <= _names(served.http.get(f"{url}readLatest").json()))

    for option in ("readLatest", "readRecent", "readHistory"):
        answer = served.http.get(f"{url}{option}").json()
        assert answer.keys() == {"path", "metrics"}
        assert _names(answer) <= wanted
        for each in answer["metrics"]:
            assert each.keys() == {"time", "value"}
            assert each["time"] > 1_600_000_000_000
            kind = each["value"]["$type"].rpartition(".")[2]
            assert list(differences(kinds[kind], each["value"])) == []


def _names(answer: Any) -> set[str]:
    return {each["value"]["name"].partition(":")[2] for each in answer["metrics"]}


def test_a_difference_is_found() -> None:
    wanted = {"a": [{"b": "text"}], "c": {"tuple": ["number", "text"]}}

    assert list(differences(wanted, {"a": [{"b": 1}], "c": [1, "x"], "d": 1})) == [
        ".d is not in Gearpump",
        ".a[].b is number, and text in Gearpump",
    ]
    assert list(differences(wanted, {"a": [], "c": [1]})) == [".c is no tuple: [1]"]


@pytest.mark.parametrize("path", ["appmaster/9999", "worker/9999", "nowhere"])
def test_what_is_not_there_is_404(served: Served, path: str) -> None:
    """Gearpump says 200 with "nonexist", 500 with a traceback, and text."""
    answer = served.get(path)

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]
