"""Instances of users' classes between processes, in state, and what cannot travel."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from threading import Lock
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import load
from gearpy.errors import OperatorError
from gearpy.messages.client import Artifact
from gearpy.messages.summaries import ApplicationSummary

PROGRAM = """
    import datetime as dt, enum, uuid
    from dataclasses import dataclass
    from decimal import Decimal
    from pathlib import Path
    from threading import Lock

    import attrs, msgspec, numpy as np, pydantic
    import gearpy as gp

    class Colour(enum.Enum):
        RED = 1

    @dataclass
    class Order:
        x: object

    @attrs.define
    class Made:
        x: object

    class Model(pydantic.BaseModel):
        x: int

    class Row(msgspec.Struct):
        x: int

    class Plain:
        def __init__(self, x):
            self.x = x

    class Holder:
        def __init__(self, x):
            self.lock = Lock()

    class Money:
        def __init__(self, cents):
            self.cents = cents
        def __reduce__(self):
            raise TypeError

    class MoneySerializer:
        def encode(self, money):
            return money.cents
        def decode(self, data):
            return Money(data)

    KINDS = {
        "enum": lambda i: Colour.RED, "order": Order, "made": Made, "row": lambda i: Row(i),
        "model": lambda i: Model(x=i), "plain": Plain, "path": lambda i: Path(f"a/{i}"),
        "uuid": lambda i: uuid.UUID(int=i), "decimal": Decimal, "array": lambda i: np.arange(i),
        "date": lambda i: dt.date(2024, 1, 1 + i), "deep": lambda i: Order([Made(Colour.RED)]),
    }

    def shown(value):
        return [type(value).__name__, repr(getattr(value, "x", ""))[:9]]

    def all_kinds(args):
        app = gp.StreamApp("kinds")
        records = [(name, i) for name in KINDS for i in range(1, 9)]
        (
            app.read(gp.collection(records))
            .map(lambda r: (r[0], KINDS[r[0]](r[1])))
            .key_by(lambda r: r[0], parallelism=2)
            .map_with_state(lambda kept, r: (r[1], [r[0], shown(r[1]), shown(kept)]))
            .write(gp.jsonl_folder(args[0]))
        )
        return app

    def holders(args):
        app = gp.StreamApp("holders")
        (
            app.read(gp.collection(range(9)))
            .map(lambda i: {"at": [Holder(i)]})
            .key_by(lambda r: 1, parallelism=2)
            .map_with_state(lambda kept, r: (None, str(r)))
            .write(gp.jsonl_folder(args[0]))
        )
        return app

    def money(args):
        app = gp.StreamApp("money")
        (
            app.read(gp.collection(range(9)))
            .map(Money)
            .key_by(lambda m: m.cents, parallelism=2)
            .map_with_state(lambda kept, m: (None, m.cents))
            .write(gp.jsonl_folder(args[0]))
        )
        return app
"""


SHARED = """
    import enum
    import gearpy as gp

    class Colour(enum.Enum):
        {member} = 1

    app = gp.StreamApp("{member}")
    (
        app.read(gp.collection(range(200)))
        .map(lambda i: (i, Colour.{member}))
        .key_by(lambda r: r[0], parallelism=4)
        .map_with_state(lambda _, r: (r[1], [r[1] is Colour.{member}, r[1].name]))
        .write(gp.jsonl_folder({out!r}))
    )
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(load(env={}), executors="process") as started:
        yield started


def submitted(
    cluster: LocalCluster, tmp_path: Path, attr: str, **config: str
) -> ApplicationSummary:
    """Run a program on two executors in processes of their own, to its end."""
    file = tmp_path / "shop.py"
    file.write_text(dedent(PROGRAM))
    artifact = Artifact(kind="file", location=str(file), attr=attr, args=(str(tmp_path / "out"),))
    return cluster.client.submit(attr, artifact, executors=2, config=config).wait()


def shown_in(folder: Path) -> list[Any]:
    return [
        json.loads(line)
        for file in folder.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]


def test_values_of_every_kind_travel_and_are_kept_without_registration(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    assert submitted(cluster, tmp_path, "all_kinds").status == "succeeded"

    found = shown_in(tmp_path / "out")
    assert len(found) == 12 * 8
    expected = {"enum": "Colour", "order": "Order", "made": "Made", "model": "Model", "row": "Row"}
    expected |= {"plain": "Plain", "path": "PosixPath", "uuid": "UUID", "decimal": "Decimal"}
    expected |= {"array": "ndarray", "date": "date", "deep": "Order"}
    assert {name: kind for name, (kind, _), _ in found} == expected
    assert all(kept in (kind, "NoneType") for _, (kind, _), (kept, _) in found)


def test_what_cannot_travel_fails_the_application_at_once(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """It would fail again, so no restart is spent on it."""
    with pytest.raises(OperatorError) as raised:
        submitted(cluster, tmp_path, "holders")

    assert "record['at'][0].lock cannot be sent to another process" in raised.value.cause
    assert "register_serializer(lock, encode, decode)" in raised.value.cause
    assert "map" in raised.value.operator
    assert "Holder" in raised.value.record


def test_a_serializer_of_the_configuration_is_used(cluster: LocalCluster, tmp_path: Path) -> None:
    entry = "shop:Money=shop:MoneySerializer"

    assert submitted(cluster, tmp_path, "money", serializers=entry).status == "succeeded"
    assert sorted(shown_in(tmp_path / "out")) == list(range(9))


@pytest.mark.parametrize("executors", [1, 2])
def test_what_cannot_travel_is_refused_also_where_nothing_travels(
    tmp_path: Path, executors: int
) -> None:
    """Else a program that works on a laptop would fail on a cluster."""
    app = gp.StreamApp("embedded")
    (
        app.read(gp.collection(range(9)))
        .map(lambda i: (i, Lock()))
        .key_by(lambda pair: pair[0])
        .map_with_state(lambda _, pair: (None, str(pair)))
        .write(gp.jsonl_folder(tmp_path / "out"))
    )
    config = load(env={}, overrides={"application.total-retries": "5"})

    with pytest.raises(OperatorError, match=r"record\[1\] cannot be sent to another process"):
        gp.run(app, executors=executors, config=config)


def test_programs_of_one_process_do_not_mix_their_classes(tmp_path: Path) -> None:
    running = []
    with LocalCluster(load(env={}), data="tcp") as cluster:
        for member in ("RED", "BLUE"):
            folder = tmp_path / member
            folder.mkdir()
            text = dedent(SHARED).format(member=member, out=str(folder / "out"))
            (folder / "shop.py").write_text(text)
            artifact = Artifact(kind="file", location=str(folder / "shop.py"))
            running.append(cluster.client.submit(member, artifact, executors=2))
        assert [each.wait().status for each in running] == ["succeeded", "succeeded"]

    for member in ("RED", "BLUE"):
        assert shown_in(tmp_path / member / "out") == [[True, member]] * 200


TYPED: Final = """
import gearpy as gp
from dataclasses import dataclass

@dataclass
class Total:
    n: int

app, found = gp.StreamApp("typed"), []
numbers = app.read(gp.collection([Total(n) for n in range(10)]))
by_parity = numbers.key_by(lambda each: each.n % 2, parallelism=2)
totals = by_parity.map_with_state(lambda old, new: (Total(old.n + new.n),) * 2, initial=Total(0))
totals.write(gp.to_list(found))
_ = gp.run(app, executors=2)
print(sorted(each.n for each in found))
"""


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(["-"], id="standard input"),
        pytest.param(["-c", TYPED], id="-c"),
        pytest.param(["-i"], id="prompt"),
        pytest.param(["-m", "asyncio"], id="prompt of asyncio", marks=pytest.mark.long),
        pytest.param(
            ["-c", "import code; code.interact()"], id="prompt of code", marks=pytest.mark.long
        ),
    ],
)
def test_classes_that_are_in_no_file_are_records_and_state(given: list[str]) -> None:
    typed = TYPED.replace("n: int\n", "n: int\n\n")  # An empty line ends a class at a prompt.
    done = subprocess.run(
        [sys.executable, *given],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "[0, 1, 2, 4, 6, 9, 12, 16, 20, 25]" in done.stdout, done.stderr
