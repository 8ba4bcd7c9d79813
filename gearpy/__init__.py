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
    from gearpy.cluster.embedded.run import run
    from gearpy.cluster.local import LocalCluster
    from gearpy.config.load import load as load_config
    from gearpy.config.schema import Config
    from gearpy.connectors.console import console, stdout
    from gearpy.connectors.datasets import arrow, csv, jsonl, parquet
    from gearpy.connectors.delta_table import delta_table
    from gearpy.connectors.epoch_writer import EpochOwner, EpochWriter
    from gearpy.connectors.files import files, jsonl_file, text_file
    from gearpy.connectors.folder_sinks import jsonl_folder
    from gearpy.connectors.generator import generate
    from gearpy.connectors.hive_folder import hive_folder
    from gearpy.connectors.memory import collection, to_list
    from gearpy.connectors.parquet import parquet_folder
    from gearpy.connectors.stdin import stdin
    from gearpy.connectors.table_folders import arrow_folder, csv_folder
    from gearpy.connectors.tables import generate_tables, rows
    from gearpy.connectors.tcp import tcp_lines
    from gearpy.connectors.window_log_sink import window_log_folder
    from gearpy.connectors.window_log_source import window_log
    from gearpy.core import aggregates as agg
    from gearpy.core.aggregates import Aggregate
    from gearpy.core.monoid_state import NonWindowState, PersistentState
    from gearpy.core.monoids import (
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
    from gearpy.core.partition import (
        BroadcastPartitioner,
        CoLocationPartitioner,
        GroupByPartitioner,
        HashPartitioner,
        MulticastPartitioner,
        ShuffleGroupingPartitioner,
        ShufflePartitioner,
        UnicastPartitioner,
    )
    from gearpy.core.trigger import after_count, after_watermark, all_of, any_of, every
    from gearpy.core.window import (
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
    from gearpy.core.window_state import Interval, Window, WindowState
    from gearpy.dsl.application import StreamApp
    from gearpy.dsl.branches import Branches
    from gearpy.dsl.keyed import KeyedStream
    from gearpy.dsl.stream import Stream
    from gearpy.dsl.windowed import WindowedStream
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
    from gearpy.state.timers import KeyTimer
    from gearpy.task.api import (
        FINISHED,
        Sink,
        SinkWriter,
        Source,
        SourceReader,
        Task,
        TaskContext,
        TransactionalWriter,
    )
    from gearpy.task.application import Graph, Processor, StreamApplication
    from gearpy.task.join_result import CoGroup, JoinResult
    from gearpy.task.persistent import PersistentTask, ValueSerializer
    from gearpy.task.sides import Side
    from gearpy.task.window_result import WindowResult
    from gearpy.wire.records import register_record, register_serializer

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
    "gearpy.cluster.local": ("LocalCluster",),
    "gearpy.config.schema": ("Config",),
    "gearpy.connectors.console": ("console", "stdout"),
    "gearpy.connectors.datasets": ("arrow", "csv", "jsonl", "parquet"),
    "gearpy.connectors.delta_table": ("delta_table",),
    "gearpy.connectors.epoch_writer": ("EpochOwner", "EpochWriter"),
    "gearpy.connectors.files": ("files", "jsonl_file", "text_file"),
    "gearpy.connectors.folder_sinks": ("jsonl_folder",),
    "gearpy.connectors.generator": ("generate",),
    "gearpy.connectors.hive_folder": ("hive_folder",),
    "gearpy.connectors.memory": ("collection", "to_list"),
    "gearpy.connectors.parquet": ("parquet_folder",),
    "gearpy.connectors.stdin": ("stdin",),
    "gearpy.connectors.table_folders": ("arrow_folder", "csv_folder"),
    "gearpy.connectors.tables": ("generate_tables", "rows"),
    "gearpy.connectors.tcp": ("tcp_lines",),
    "gearpy.connectors.window_log_sink": ("window_log_folder",),
    "gearpy.connectors.window_log_source": ("window_log",),
    "gearpy.core.aggregates": ("Aggregate",),
    "gearpy.core.monoid_state": ("NonWindowState", "PersistentState"),
    "gearpy.core.monoids": (
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
    "gearpy.core.partition": (
        "BroadcastPartitioner",
        "CoLocationPartitioner",
        "GroupByPartitioner",
        "HashPartitioner",
        "MulticastPartitioner",
        "ShuffleGroupingPartitioner",
        "ShufflePartitioner",
        "UnicastPartitioner",
    ),
    "gearpy.core.trigger": ("after_count", "after_watermark", "all_of", "any_of", "every"),
    "gearpy.core.window": (
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
    "gearpy.core.window_state": ("Interval", "Window", "WindowState"),
    "gearpy.dsl.application": ("StreamApp",),
    "gearpy.dsl.branches": ("Branches",),
    "gearpy.dsl.keyed": ("KeyedStream",),
    "gearpy.dsl.stream": ("Stream",),
    "gearpy.dsl.windowed": ("WindowedStream",),
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
    "gearpy.state.timers": ("KeyTimer",),
    "gearpy.task.api": (
        "FINISHED",
        "Sink",
        "SinkWriter",
        "Source",
        "SourceReader",
        "Task",
        "TaskContext",
        "TransactionalWriter",
    ),
    "gearpy.task.application": ("Graph", "Processor", "StreamApplication"),
    "gearpy.task.join_result": ("CoGroup", "JoinResult"),
    "gearpy.task.persistent": ("PersistentTask", "ValueSerializer"),
    "gearpy.task.sides": ("Side",),
    "gearpy.task.window_result": ("WindowResult",),
    "gearpy.wire.records": ("register_record", "register_serializer"),
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
_MODULES = {"agg": "gearpy.core.aggregates"}


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
