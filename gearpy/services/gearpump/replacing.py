"""Gearpump's `ReplaceProcessor` as a change of a program that runs. Pure: the plan is given."""

import json
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace
from pydantic import Field, ValidationError

from gearpy.ids import MAX_MS, AppId
from gearpy.messages.client import Artifact, UpdateApplication
from gearpy.services.gearpump.shapes import AppJar, LifeTime, Shape
from gearpy.services.problems import ProblemRaised

_REPLACE: Final = "ReplaceProcessor"
_SUCCESS: Final = "org.apache.gearpump.streaming.appmaster.DagManager.DAGOperationSuccess"
_TASKS_MAX: Final = 999_999
_UPDATE: Final = "send its program as jar, or use gear app update"


class DagOperationSuccess(Shape):
    """Answer of ``dynamicdag``: the change has begun. Gearpump: `DAGOperationSuccess`."""

    type: str = Field(default=_SUCCESS, alias="$type")


class NewProcessor(Shape):
    """The processor that is to take the place of another. Gearpump: `ProcessorDescription`."""

    task_class: str = ""
    parallelism: int | None = Field(default=None, ge=1, le=_TASKS_MAX)
    description: str = ""
    task_conf: dict[str, Any] | None = None
    life: LifeTime | None = None
    jar: AppJar | None = None


@dataclass(frozen=True, slots=True)
class GraphChange:
    """A change of a graph that can be had: tasks of a step, by its id, or none.

    ``at_event_ms`` is the event time at which it is made; None: as soon as it can be.
    """

    scale: tuple[tuple[str, int], ...]
    at_event_ms: int | None = None

    def message(
        self, app_id: AppId, artifact: Artifact | None, *, allows_drop: bool
    ) -> UpdateApplication:
        if artifact is not None:
            return UpdateApplication(
                app_id=app_id,
                artifact=replace(artifact, scale=self.scale),
                allows_drop=allows_drop,
                at_event_ms=self.at_event_ms,
            )
        if not self.scale:
            raise ProblemRaised(
                400,
                "nothing is to change: the processor has so many tasks",
                "give another parallelism",
            )
        return UpdateApplication(app_id=app_id, scale=self.scale, at_event_ms=self.at_event_ms)


class AskedReplacement(Shape):
    """A processor of a running graph, and the one that is to take its place.

    ``inherit_conf`` changes nothing, as there is no `taskConf` that another could inherit.
    Gearpump: `DagManager.ReplaceProcessor`.
    """

    type: str = Field(default=_REPLACE, alias="$type")
    old_processor_id: int
    new_processor_description: NewProcessor
    inherit_conf: bool = False

    @property
    def handle(self) -> str:
        """The handle of the program that was uploaded for it before; empty if none was."""
        jar = self.new_processor_description.jar
        return jar.file_path.path if jar is not None else ""

    def change_of(self, plan: str, *, has_program: bool) -> GraphChange:
        """Return the change of a graph, by the plan of the running one."""
        processors = {each["number"]: each for each in json.loads(plan)["processors"]}
        old = processors.get(self.old_processor_id)
        if old is None:
            known = ", ".join(map(str, processors))
            raise ProblemRaised(
                404, f"there is no processor {self.old_processor_id}; there are: {known}"
            )
        new = self.new_processor_description
        if new.task_class not in {"", old["kind"]} and not has_program:
            raise ProblemRaised(
                400,
                f"processor {self.old_processor_id} runs {old['kind']}, and a class is replaced "
                "with its program only",
                _UPDATE,
            )
        life = new.life
        if life is not None and life.death < MAX_MS:
            raise ProblemRaised(
                400,
                "a processor ends when another one takes its place, and not before",
                f"give {MAX_MS} as death of life, and replace it at that event time",
            )
        at_event_ms = life.birth if life is not None and life.birth > 0 else None
        if any(value != {} for value in (new.task_conf or {}).values()):
            raise ProblemRaised(400, "taskConf cannot be changed by itself", _UPDATE)
        if new.parallelism in {None, old["parallelism"]}:
            return GraphChange((), at_event_ms)
        return GraphChange(((old["steps"][0]["id"], new.parallelism or 1),), at_event_ms)


def replace_processor(args: str) -> AskedReplacement:
    try:
        asked = AskedReplacement.model_validate_json(args)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProblemRaised(
            400,
            f"args is no {_REPLACE}: {where and f'{where}: '}{first['msg']}",
            'such as {"oldProcessorId": 1, "newProcessorDescription": {"parallelism": 4}}',
        ) from None
    if asked.type.rpartition(".")[2] != _REPLACE:
        raise ProblemRaised(400, f"{asked.type[:200]} is not known", f"there is only {_REPLACE}")
    return asked
