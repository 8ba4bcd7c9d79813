"""What users import: the names, and what importing them costs."""

import ast
import inspect
import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

import gearpy
import gearpy.core

ROOT: Final = Path(__file__).parents[1]

#: There are so many names at least, that none is read as none.
MANY: Final = 100

#: Plain numbers, which have no docstring of their own.
NUMBERS: Final = frozenset({"FINISHED", "MAX_MS", "MIN_MS"})

#: What the command line and the workers need, but no import of a name may bring along.
HEAVY: Final = frozenset(
    {"asyncio", "msgpack", "msgspec", "numpy", "pydantic", "pykka", "rich", "typer", "uvloop"}
)


def test_the_table_of_public_names_is_what_is_there() -> None:
    table = ast.parse((ROOT / "gearpy" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = [
        each for line in table.body if isinstance(line, ast.ImportFrom) for each in line.names
    ]
    given = [line.targets[0] for line in table.body if isinstance(line, ast.Assign)]

    names = [each.asname for each in imported if each.asname]
    names += [each.id for each in given if isinstance(each, ast.Name)]

    assert sorted(names) == dir(gearpy)
    assert len(names) == len({*names}) > MANY


@pytest.mark.parametrize("name", dir(gearpy))
def test_a_public_name_resolves_and_explains_itself(name: str) -> None:
    value = getattr(gearpy, name)

    assert isinstance(value, int) if name in NUMBERS else (value.__doc__ or "").strip()


@pytest.mark.parametrize("name", dir(gearpy))
def test_the_methods_of_a_public_class_explain_themselves(name: str) -> None:
    value = getattr(gearpy, name)
    methods = [
        f"{base.__name__}.{method}"
        for base in (value.__mro__ if isinstance(value, type) else ())
        if base.__module__.startswith("gearpy")
        for method, function in vars(base).items()
        if not method.startswith("_") and (callable(function) or isinstance(function, property))
        if not (inspect.getdoc(getattr(base, method)) or "").strip()
    ]

    assert not methods


def test_earlier_names_still_work() -> None:
    """A program that was written with them runs; new ones are proposed the new names."""
    assert getattr(gearpy, "memory") is gearpy.to_list  # noqa: B009 - checkers do not know it
    assert getattr(gearpy, "table") is gearpy.rows  # noqa: B009
    windows = gearpy.tumbling("1m")
    assert windows.allowing("5s") == windows.allowed_lateness("5s")
    assert not {"memory", "table"} & {*dir(gearpy), *dir(gearpy)}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tumblign': did you mean tumbling"):
        getattr(gearpy, "tumblign")  # noqa: B009 - checkers know that it is not there


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sum", "agg.sum"),
        ("read_csv", "csv"),
        ("kafka_source", "kafka"),
        ("to_parquet", "parquet_folder"),
        ("kafka_writer", "kafka_sink"),
        ("from_pandas", "rows"),
        ("to_polars", "to_table"),
        ("read_json", "jsonl"),
    ],
)
def test_a_name_of_another_library_is_answered_by_the_one_here(name: str, meant: str) -> None:
    """People come with the names of pandas, Spark and SQL; Python adds no guess of its own."""
    with pytest.raises(AttributeError, match=f"did you mean {meant}\\?$"):
        getattr(gearpy, name)


def test_importing_gearpy_loads_nothing_heavy() -> None:
    assert not _loaded_by("import gearpy") & HEAVY


def test_importing_the_cores_loads_no_actor_and_no_event_loop() -> None:
    modules = [module.name for module in pkgutil.iter_modules(gearpy.core.__path__)]

    loaded = _loaded_by("; ".join(f"import gearpy.core.{module}" for module in modules))

    # What is stored is encoded by msgspec, which does nothing else.
    assert not loaded & ({*HEAVY, "gearpy.actor", "gearpy.transport"} - {"msgspec"})


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("gearpy.cli.apps.applications", {"gearpy.state", "gearpy.storage", "pyarrow"}),
        ("gearpy.cli.stored.state", {"gearpy.cluster.client", "gearpy.transport", "duckdb"}),
    ],
)
def test_a_command_loads_what_it_needs(module: str, unwanted: set[str]) -> None:
    """Asking a cluster is no sending of programs, nor is looking at state; each waits for all."""
    unwanted |= {"asyncio", "gearpy.cluster.programs", "gearpy.task.api.application"}

    assert not unwanted & _loaded_by(f"import {module}")


def test_columns_of_a_sink_have_all_loaded_before_the_first_record() -> None:
    """Arrow imports pandas for its first column; the stream would stand for as long."""
    loaded = _loaded_by("from gearpy.columns.log_columns import LogColumns; LogColumns('sink')")

    assert ("pandas" in loaded) == (find_spec("pandas") is not None)


def _loaded_by(code: str) -> set[str]:
    report = f"{code}; import json, sys; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))
