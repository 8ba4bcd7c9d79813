"""gearpy: an actor-based streaming runtime.

    import gearpy as gp

    app = gp.StreamApp("wordcount")
    (
        app.read(gp.files("books/*.txt"))
        .flat_map(str.split)
        .key_by(lambda word: word)
        .window(gp.tumbling("10s"))
        .count()
        .write(gp.console())
    )
    gp.run(app)

Everything users need is a name of this module, of `gearpy.testing` or of `gearpy.errors`. Names
load what they stand for when they are first used, so that importing a core loads no actor.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gearpy.cluster.boot.local import LocalCluster
    from gearpy.cluster.embedded.run import run
    from gearpy.config.load import load as load_config
    from gearpy.config.schema import Config
    from gearpy.connectors.console import console, stdout
    from gearpy.connectors.delta.table import delta_table
    from gearpy.connectors.epoch_writer import EpochOwner, EpochWriter
    from gearpy.connectors.files.datasets import arrow, csv, jsonl, parquet
    from gearpy.connectors.files.lines_files import files, jsonl_file, text_file
    from gearpy.connectors.folders.json import jsonl_folder
    from gearpy.connectors.folders.parquet import parquet_folder
    from gearpy.connectors.folders.tables import arrow_folder, csv_folder
    from gearpy.connectors.memory import collection, to_list
    from gearpy.connectors.partitioned.hive import hive_folder
    from gearpy.connectors.streams.generator import generate
    from gearpy.connectors.streams.stdin import stdin
    from gearpy.connectors.streams.tcp import tcp_lines
    from gearpy.connectors.tables import generate_tables, rows
    from gearpy.connectors.window_log.sink import window_log_folder
    from gearpy.connectors.window_log.source import window_log
    from gearpy.core.flow.partition import (
        BroadcastPartitioner,
        CoLocationPartitioner,
        GroupByPartitioner,
        HashPartitioner,
        MulticastPartitioner,
        ShuffleGroupingPartitioner,
        ShufflePartitioner,
        UnicastPartitioner,
    )
    from gearpy.core.gearpump.monoid_state import NonWindowState, PersistentState
    from gearpy.core.gearpump.monoids import (
        CountsGroup,
        Group,
        MapGroup,
        MapMonoid,
        MaxMonoid,
        MinMonoid,
        Monoid,
        Serializer,
        SumGroup,
        UnionMonoid,
    )
    from gearpy.core.gearpump.window_state import Interval, Window, WindowState
    from gearpy.core.window import aggregates as agg
    from gearpy.core.window.aggregates import Aggregate
    from gearpy.core.window.trigger import after_count, after_watermark, all_of, any_of, every
    from gearpy.core.window.windows import (
        CountWindows,
        FixedWindows,
        GlobalWindows,
        SessionWindows,
        SlidingWindows,
        TumblingWindows,
        Windows,
        count_window,
        global_window,
        session,
        sliding,
        tumbling,
    )
    from gearpy.dsl.application import StreamApp
    from gearpy.dsl.streams.branches import Branches
    from gearpy.dsl.streams.keyed import KeyedStream
    from gearpy.dsl.streams.stream import Stream
    from gearpy.dsl.streams.windowed import WindowedStream
    from gearpy.errors import (
        ApplicationFailed,
        ConfigError,
        GearpyError,
        GraphError,
        OperatorError,
    )
    from gearpy.ids import MAX_MS, MIN_MS, TaskId
    from gearpy.messages.data import Batch, Message
    from gearpy.state.keyed import KeyedState
    from gearpy.state.kinds.timers import KeyTimer
    from gearpy.task.api.application import Graph, Processor, StreamApplication
    from gearpy.task.api.interfaces import (
        FINISHED,
        Sink,
        SinkWriter,
        Source,
        SourceReader,
        Task,
        TaskContext,
        TransactionalWriter,
    )
    from gearpy.task.api.join_result import CoGroup, JoinResult
    from gearpy.task.api.persistent import PersistentTask, ValueSerializer
    from gearpy.task.api.sides import Side
    from gearpy.task.api.window_result import WindowResult
    from gearpy.wire.values.records import register_record, register_serializer

__all__ = [
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

logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "gearpy.cluster.embedded.run": ("run",),
    "gearpy.cluster.boot.local": ("LocalCluster",),
    "gearpy.config.schema": ("Config",),
    "gearpy.connectors.console": ("console", "stdout"),
    "gearpy.connectors.files.datasets": ("arrow", "csv", "jsonl", "parquet"),
    "gearpy.connectors.delta.table": ("delta_table",),
    "gearpy.connectors.epoch_writer": ("EpochOwner", "EpochWriter"),
    "gearpy.connectors.files.lines_files": ("files", "jsonl_file", "text_file"),
    "gearpy.connectors.folders.json": ("jsonl_folder",),
    "gearpy.connectors.streams.generator": ("generate",),
    "gearpy.connectors.partitioned.hive": ("hive_folder",),
    "gearpy.connectors.memory": ("collection", "to_list"),
    "gearpy.connectors.folders.parquet": ("parquet_folder",),
    "gearpy.connectors.streams.stdin": ("stdin",),
    "gearpy.connectors.folders.tables": ("arrow_folder", "csv_folder"),
    "gearpy.connectors.tables": ("generate_tables", "rows"),
    "gearpy.connectors.streams.tcp": ("tcp_lines",),
    "gearpy.connectors.window_log.sink": ("window_log_folder",),
    "gearpy.connectors.window_log.source": ("window_log",),
    "gearpy.core.window.aggregates": ("Aggregate",),
    "gearpy.core.gearpump.monoid_state": ("NonWindowState", "PersistentState"),
    "gearpy.core.gearpump.monoids": (
        "CountsGroup",
        "Group",
        "MapGroup",
        "MapMonoid",
        "MaxMonoid",
        "MinMonoid",
        "Monoid",
        "Serializer",
        "SumGroup",
        "UnionMonoid",
    ),
    "gearpy.core.flow.partition": (
        "BroadcastPartitioner",
        "CoLocationPartitioner",
        "GroupByPartitioner",
        "HashPartitioner",
        "MulticastPartitioner",
        "ShuffleGroupingPartitioner",
        "ShufflePartitioner",
        "UnicastPartitioner",
    ),
    "gearpy.core.window.trigger": ("after_count", "after_watermark", "all_of", "any_of", "every"),
    "gearpy.core.window.windows": (
        "CountWindows",
        "FixedWindows",
        "GlobalWindows",
        "SessionWindows",
        "SlidingWindows",
        "TumblingWindows",
        "Windows",
        "count_window",
        "global_window",
        "session",
        "sliding",
        "tumbling",
    ),
    "gearpy.core.gearpump.window_state": ("Interval", "Window", "WindowState"),
    "gearpy.dsl.application": ("StreamApp",),
    "gearpy.dsl.streams.branches": ("Branches",),
    "gearpy.dsl.streams.keyed": ("KeyedStream",),
    "gearpy.dsl.streams.stream": ("Stream",),
    "gearpy.dsl.streams.windowed": ("WindowedStream",),
    "gearpy.errors": (
        "ApplicationFailed",
        "ConfigError",
        "GearpyError",
        "GraphError",
        "OperatorError",
    ),
    "gearpy.ids": ("MAX_MS", "MIN_MS", "TaskId"),
    "gearpy.messages.data": ("Batch", "Message"),
    "gearpy.state.keyed": ("KeyedState",),
    "gearpy.state.kinds.timers": ("KeyTimer",),
    "gearpy.task.api.interfaces": (
        "FINISHED",
        "Sink",
        "SinkWriter",
        "Source",
        "SourceReader",
        "Task",
        "TaskContext",
        "TransactionalWriter",
    ),
    "gearpy.task.api.application": ("Graph", "Processor", "StreamApplication"),
    "gearpy.task.api.join_result": ("CoGroup", "JoinResult"),
    "gearpy.task.api.persistent": ("PersistentTask", "ValueSerializer"),
    "gearpy.task.api.sides": ("Side",),
    "gearpy.task.api.window_result": ("WindowResult",),
    "gearpy.wire.values.records": ("register_record", "register_serializer"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
#: Public names that are called otherwise where they live.
_RENAMED = {"load_config": ("gearpy.config.load", "load")}
#: Earlier public names: programs that have them still run.
_EARLIER = {
    "memory": ("gearpy.connectors.memory", "to_list"),
    "table": ("gearpy.connectors.tables", "rows"),
}
#: Public names of modules.
_MODULES = {"agg": "gearpy.core.window.aggregates"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED or name in _EARLIER:
        home, own = (_RENAMED | _EARLIER)[name]
        return getattr(import_module(home), own)
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gearpy' has no attribute {name!r}{_advice(name)}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def _advice(name: str) -> str:
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    nearest = get_close_matches(name, __all__, n=1)
    return f": did you mean {nearest[0]}?" if nearest else ""


def __dir__() -> list[str]:
    return sorted(__all__)
