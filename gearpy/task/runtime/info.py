"""The description of a task: its id, its operator, its links, its application."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gearpy.ids import FIRST_SESSION, AppId, ExecutorId, SessionId, TaskId
from gearpy.task.runtime.outlet import OutputEdge


class TaskInfo(Struct, frozen=True, kw_only=True):
    """Names a task, its operator, its links and its application."""

    task_id: TaskId
    session: SessionId
    parallelism: int
    operator: str
    upstream: Sequence[TaskId]
    edges: Sequence[OutputEdge]
    app_id: AppId = AppId(0)
    app_name: str = ""
    executor_id: ExecutorId = ExecutorId(0)
    run: str = ""
    program: str = ""  #: Package of the program's modules, where a process has several programs.
    config: Mapping[str, Any] | None = None
    key: Callable[[Any], Any] | None = None  #: Of a record, for keyed state.
    ordered: bool = False  #: Records come in the order of event time, key timers between them.
    is_rerun: bool = False  #: It has run before; its sinks show nothing.
    first_session: SessionId = FIRST_SESSION  #: Links of sessions before it are over.
    sources: int = 0  #: How many sources records may come from; 0 if not known.
