"""What users import: the names, and what importing them costs."""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import gearpy
import gearpy.core

ROOT: Final = Path(__file__).parents[1]

#: A change here is a change for users: it belongs into docs/changelog.md.
PUBLIC: Final = [
    "FINISHED",
    "MAX_MS",
    "MIN_MS",
    "Aggregate",
    "ApplicationFailed",
    "Batch",
    "Branches",
    "BroadcastPartitioner",
    "CoGroup",
    "CoLocationPartitioner",
    "Config",
    "ConfigError",
    "CountWindows",
    "CountsGroup",
    "EpochOwner",
    "EpochWriter",
    "FixedWindows",
    "GearpyError",
    "GlobalWindows",
    "Graph",
    "GraphError",
    "Group",
    "GroupByPartitioner",
    "HashPartitioner",
    "Interval",
    "JoinResult",
    "KeyTimer",
    "KeyedState",
    "KeyedStream",
    "LocalCluster",
    "MapGroup",
    "MapMonoid",
    "MaxMonoid",
    "Message",
    "MinMonoid",
    "Monoid",
    "MulticastPartitioner",
    "NonWindowState",
    "OperatorError",
    "PersistentState",
    "PersistentTask",
    "Processor",
    "Serializer",
    "SessionWindows",
    "ShuffleGroupingPartitioner",
    "ShufflePartitioner",
    "Side",
    "Sink",
    "SinkWriter",
    "SlidingWindows",
    "Source",
    "SourceReader",
    "Stream",
    "StreamApp",
    "StreamApplication",
    "SumGroup",
    "Task",
    "TaskContext",
    "TaskId",
    "TransactionalWriter",
    "TumblingWindows",
    "UnicastPartitioner",
    "UnionMonoid",
    "ValueSerializer",
    "Window",
    "WindowResult",
    "WindowState",
    "WindowedStream",
    "Windows",
    "after_count",
    "after_watermark",
    "agg",
    "all_of",
    "any_of",
    "arrow",
    "arrow_folder",
    "collection",
    "console",
    "count_window",
    "csv",
    "csv_folder",
    "delta_table",
    "every",
    "files",
    "generate",
    "generate_tables",
    "global_window",
    "hive_folder",
    "jsonl",
    "jsonl_file",
    "jsonl_folder",
    "load_config",
    "parquet",
    "parquet_folder",
    "register_record",
    "register_serializer",
    "rows",
    "run",
    "session",
    "sliding",
    "stdin",
    "stdout",
    "tcp_lines",
    "text_file",
    "to_list",
    "tumbling",
    "window_log",
    "window_log_folder",
]

#: Plain numbers, which have no docstring of their own.
NUMBERS: Final = frozenset({"FINISHED", "MAX_MS", "MIN_MS"})

#: What the command line and the workers need, but no import of a name may bring along.
HEAVY: Final = frozenset(
    {"asyncio", "msgpack", "msgspec", "numpy", "pydantic", "pykka", "rich", "typer", "uvloop"}
)


def test_the_public_names_are_these() -> None:
    """No name comes or goes unnoticed."""
    assert gearpy.__all__ == PUBLIC
    assert dir(gearpy) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_explains_itself(name: str) -> None:
    """What is listed is there, and `help()` has something to say about it."""
    value = getattr(gearpy, name)

    assert isinstance(value, int) if name in NUMBERS else (value.__doc__ or "").strip()


def test_earlier_names_still_work() -> None:
    """A program that was written with them runs; new ones are proposed the new names."""
    assert gearpy.memory is gearpy.to_list
    assert gearpy.table is gearpy.rows
    windows = gearpy.tumbling("1m")
    assert windows.allowing("5s") == windows.allowed_lateness("5s")
    assert not {"memory", "table"} & {*gearpy.__all__, *dir(gearpy)}


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Loading names late does not hide a misspelt one."""
    with pytest.raises(AttributeError, match="no attribute 'tumblign': did you mean tumbling"):
        _ = gearpy.tumblign


def test_importing_gearpy_loads_nothing_heavy() -> None:
    """A program that only names gearpy starts at once."""
    assert not _loaded_by("import gearpy") & HEAVY


def test_importing_the_cores_loads_no_actor_and_no_event_loop() -> None:
    """Cores decide; what acts is not even there."""
    modules = [module.name for module in pkgutil.iter_modules(gearpy.core.__path__)]

    loaded = _loaded_by("; ".join(f"import gearpy.core.{module}" for module in modules))

    # What is stored is encoded by msgspec, which does nothing else.
    assert not loaded & ({*HEAVY, "gearpy.actor", "gearpy.transport"} - {"msgspec"})


def _loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh Python has after some imports."""
    report = f"{code}; import json, sys; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))
