"""Two versions of a program that were loaded from files: which of their steps differ."""

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.cluster.programs.artifacts import ApplicationLoader
from gearpy.cluster.programs.compared import ComparedPrograms
from gearpy.core.dag.graph import Life
from gearpy.core.dag.state_moves import untouched_regions
from gearpy.ids import AppId, ProcessorId
from gearpy.messages.client import Artifact
from gearpy.task.api.application import Graph, Processor, StreamApplication
from gearpy.task.api.interfaces import Task

_PROGRAM = """
import random
from dataclasses import dataclass
import gearpy as gp
import texts
from rules import least

LIMIT = 10

@dataclass(frozen=True)
class Visit:
    user: str
    cents: int

def visit(line):
    return Visit(texts.clean(line), len(line))

def is_dear(each):
    return each.cents > LIMIT

def main(args):
    app = gp.StreamApp("shop", parallelism=2)
    dear = app.read(gp.files(args[0]), name="lines").map(visit).filter(is_dear, name="dear")
    by_user = dear.key_by(lambda each: each.user)
    by_user.sum(lambda each: each.cents).write(gp.jsonl_folder(args[1]), name="sums")

    def keep(before, line):
        return before + least(line), before

    more = app.read(gp.files(args[0]), name="more lines").key_by(len)
    kept = more.map_with_state(keep, initial=0, name="least")
    kept.write(gp.jsonl_folder(args[2]), name="least shown")
    return app
"""
_FILES = {
    "program.py": _PROGRAM,
    "texts.py": "def clean(line):\n    return line.strip()\n",
    "rules.py": "OF = 3\ndef least(line):\n    return min(OF, len(line))\n",
}
_SUMS, _LEAST = {"lines", "dear", "sums"}, {"more lines", "least", "least shown"}


def loaded(folder: Path, files: dict[str, str], *args: str) -> StreamApplication:
    folder.mkdir()
    lines = folder.parent / "lines.txt"
    lines.touch()
    for name, text in files.items():
        (folder / name).write_text(text)
    digest = hashlib.sha256(str(sorted(files.items())).encode()).hexdigest()
    artifact = Artifact(
        kind="stored", location=digest, filename="program.py", args=(str(lines), *args)
    )
    application = ApplicationLoader().load(AppId(1), artifact, str(folder), folder=folder)
    assert isinstance(application, StreamApplication)
    return application


def differing(
    tmp_path: Path, files: dict[str, str], *, args: tuple[str, ...] = ("b", "c")
) -> set[str]:
    old = loaded(tmp_path / "old", _FILES, "b", "c")
    new = loaded(tmp_path / "new", _FILES | files, *args)
    compared = ComparedPrograms(old, new)
    return {
        step.name
        for pid, spec in new.dag.processors.items()
        for step in spec.steps
        if compared.difference(pid, pid) and step.name in _SUMS | _LEAST
    }


def changed(was: str, now: str, *, name: str = "program.py") -> dict[str, str]:
    assert was in _FILES[name]
    return {name: _FILES[name].replace(was, now)}


def test_the_same_program_in_another_place_is_alike(tmp_path: Path) -> None:
    assert differing(tmp_path, {}) == set()


def test_lines_and_comments_do_not_count(tmp_path: Path) -> None:
    moved = {name: f"# Moved.\n\n{text}\n# The end.\n" for name, text in _FILES.items()}

    assert differing(tmp_path, moved) == set()


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        (changed("LIMIT = 10", "LIMIT = 11"), _SUMS),
        (changed("each.user)", "each.cents)"), {"sums"}),
        (changed("each.cents)", "-each.cents)"), {"sums"}),
        (changed("cents: int", "cents: float"), _SUMS),
        (changed(".strip()", ".lower()", name="texts.py"), _SUMS),
        (changed("OF = 3", "OF = 4", name="rules.py"), {"least", "least shown"}),
        (changed("before + least", "before - least"), {"least", "least shown"}),
        (changed("initial=0", "initial=1"), {"least", "least shown"}),
        (changed("def main(args):\n", "def main(args):\n    random.seed(7)\n"), _SUMS | _LEAST),
        (changed("LIMIT = 10", "LIMIT = 10\nrandom.seed(1)"), _SUMS | _LEAST),
    ],
)
def test_what_uses_a_change_differs(tmp_path: Path, files: dict[str, str], steps: set[str]) -> None:
    found = differing(tmp_path, files)

    assert steps <= found
    assert steps & _SUMS == set() or steps & _LEAST != set() or not found & _LEAST
    assert steps & _LEAST == set() or steps & _SUMS != set() or not found & _SUMS


def test_an_argument_counts_where_it_is_used(tmp_path: Path) -> None:
    assert differing(tmp_path, {}, args=("b", "d")) == {"least", "least shown"}


def test_a_comparison_says_what_is_different(tmp_path: Path) -> None:
    old = loaded(tmp_path / "old", _FILES, "b", "c")
    new = loaded(tmp_path / "new", _FILES | changed("LIMIT = 10", "LIMIT = 11"), "b", "c")

    found = {ComparedPrograms(old, new).difference(pid, pid) for pid in new.dag.order}

    assert "in LIMIT, 10 has become 11" in found


def test_a_step_is_not_itself_different_for_what_comes_before_it(tmp_path: Path) -> None:
    old = loaded(tmp_path / "old", _FILES, "b", "c")
    new = loaded(tmp_path / "new", _FILES | changed("LIMIT = 10", "LIMIT = 11"), "b", "c")
    compared = ComparedPrograms(old, new)
    names = {pid: {step.name for step in new.dag.processors[pid].steps} for pid in new.dag.order}

    different = [names[pid] for pid in names if compared.difference(pid, pid)]
    itself = [names[pid] for pid in names if compared.compare(pid, pid)[1]]

    assert [each for each in different if "dear" in each] == itself
    assert len(different) > len(itself)


def test_a_class_of_another_module_and_another_number_of_tasks_are_said_so(tmp_path: Path) -> None:
    source = (
        "import gearpy as gp\n\nclass Same(gp.Task): ...\n\ndef main(args):\n"
        "    app = gp.StreamApp('a')\n    keyed = app.read(gp.collection(['a'])).key_by(str)\n"
        "    keyed.process(Same, parallelism=2).write(gp.console())\n    return app\n"
    )
    old, other, fewer = (
        loaded(tmp_path / name, {"program.py": f"from {name} import main", f"{name}.py": text})
        for name, text in {
            "shop": source,
            "store": source,
            "fewer": source.replace("=2", "=1"),
        }.items()
    )
    pid = next(pid for pid in old.dag.order if "Same" in old.processors[pid].name)

    moved = ComparedPrograms(old, other).difference(pid, pid)
    assert moved == "in the step, shop.Same has become store.Same"
    number = "it has 1 task now, and had 2"
    both = ComparedPrograms(old, fewer).difference(pid, pid)
    assert both == f"{number}; {moved.replace('store', 'fewer')}"
    fewer = old.scaled({step.id: 1 for each in old.dag.processors.values() for step in each.steps})
    assert ComparedPrograms(old, fewer).difference(pid, pid) == number


def test_a_birth_is_no_code() -> None:
    old, new = (
        StreamApplication("app", Graph().add(Processor(Task, life=life)))
        for life in (Life(), Life(birth_ms=5))
    )

    assert ComparedPrograms(old, new).difference(ProcessorId(0), ProcessorId(0)) == ""
    assert untouched_regions(old.dag, new.dag, lambda _: True) == frozenset()


def _compared(*values: object) -> str:
    old, new = (
        StreamApplication("app", Graph().add(Processor(Task, config={"value": each})))
        for each in values
    )
    return ComparedPrograms(old, new).difference(ProcessorId(0), ProcessorId(0))


def _holding_itself() -> list[object]:
    kept: list[object] = []
    kept.append(kept)
    return kept


class _Slots:
    __slots__ = ("x",)

    def __init__(self, x: int) -> None:
        self.x = x


class _Words(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "made",
    [
        lambda n: 1.0 + n,
        lambda n: f"a{n}".encode(),
        lambda n: (1, [n]),
        lambda n: {"a": {n}, "b": frozenset({(1, n)})},
        Decimal,
        lambda n: timedelta(milliseconds=n),
        lambda n: Path(f"a{n}"),
        lambda n: deque([1, n]),
        lambda n: OrderedDict(a=n),
        lambda n: partial(int, base=n),
        itemgetter,
        range,
        _Slots,
        _Words,
        lambda n: MappingProxyType({"a": n}),
        lambda n: lambda other: other + n,
        lambda n: lru_cache(maxsize=n)(len),
        lambda n: pa.schema([(f"b{n}", pa.string())]),
        lambda n: [].append if n == 8 else None,
        lambda n: [[]] * 2 if n == 8 else [[], []],
        lambda n: _holding_itself() if n == 8 else [[]],
    ],
    ids=map(str, range(21)),
)
def test_values_are_compared(made: Callable[[int], object]) -> None:
    assert _compared(made(8), made(8)) == ""
    assert _compared(made(8), made(7)) != ""


def test_what_cannot_be_looked_into_is_only_like_itself() -> None:
    lock = threading.Lock()
    assert _compared(lock, lock) == ""
    assert _compared(lock, threading.Lock()) == "in the step, lock is another one"
    assert "generator is another one" in _compared(*((n for n in "ab") for _ in range(2)))
    assert "too much" in _compared(*([[n] for n in range(400_000)] for _ in range(2)))


def test_a_long_chain_of_objects_is_compared() -> None:
    chains: list[object] = [None, None]
    for _ in range(10_000):
        chains = [[each] for each in chains]

    assert _compared(*chains) == ""


def test_a_value_that_is_another_one_is_told() -> None:
    assert _compared("b", "c") == "in the step, 'b' has become 'c'"
    assert _compared([1], [1, 2]) == "in the step, list is another one"
