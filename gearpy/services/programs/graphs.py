"""The program of a graph that is given as JSON. Gearpump: `SubmitApplicationRequest`."""

import keyword
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from gearpy.errors import ConfigError
from gearpy.services.gearpump.shapes import AppJar, Shape

#: Of Gearpump's five partitioners, the names without a package.
_BUILTIN: Final = frozenset(
    {
        "BroadcastPartitioner",
        "CoLocationPartitioner",
        "HashPartitioner",
        "ShuffleGroupingPartitioner",
        "ShufflePartitioner",
    }
)
_GEARPUMP: Final = ("org.apache.gearpump.", "io.gearpump.", "gearpy.core.flow.partition.")
_PROCESSORS_MAX: Final = 1000
_PARALLELISM_MAX: Final = 10_000
_NAME_CHARS_MAX: Final = 200
_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")

_Name = Annotated[str, Field(min_length=1, max_length=_NAME_CHARS_MAX)]


class GraphProcessor(Shape):
    """A processor: a `Task` class by its dotted name, and how many of it run.

    ``jar`` is what `uploadjar` has answered; without it the class must be installed where it runs.
    """

    id: int | None = None
    task_class: _Name
    parallelism: int = Field(default=1, ge=1, le=_PARALLELISM_MAX)
    description: str = Field(default="", max_length=_NAME_CHARS_MAX)
    task_conf: dict[str, Any] | None = None
    jar: AppJar | None = None


class GraphEdges(Shape):
    """Numbers of processors, and edges: source, partitioner, target."""

    vertex_list: list[int] = Field(max_length=_PROCESSORS_MAX)
    edge_list: list[tuple[int, _Name, int]] = Field(max_length=10 * _PROCESSORS_MAX)


class SubmittedGraph(Shape):
    """An application as JSON. ``user_config`` has its own settings by key."""

    app_name: str = Field(min_length=1, max_length=_NAME_CHARS_MAX)
    processors: dict[int, GraphProcessor] = Field(min_length=1, max_length=_PROCESSORS_MAX)
    dag: GraphEdges
    user_config: dict[str, str] | None = None

    @field_validator("processors", mode="before")
    @classmethod
    def _of_pairs(cls, given: Any) -> Any:
        """Take pairs as well, which is how Gearpump writes a table by numbers."""
        is_pairs = isinstance(given, list) and all(
            isinstance(each, list) and len(each) == 2  # noqa: PLR2004 - a pair
            for each in given
        )
        return {str(key): value for key, value in given} if is_pairs else given

    @property
    def handles(self) -> list[str]:
        jars = [each.jar for each in self.processors.values() if each.jar is not None]
        return list(dict.fromkeys(jar.file_path.path for jar in jars))


def program_of(graph: SubmittedGraph) -> str:
    if mistakes := [*_mistakes(graph)]:
        raise ConfigError(*mistakes)
    return "\n".join(_lines(graph)) + "\n"


def _mistakes(graph: SubmittedGraph) -> Iterator[str]:
    known = set(graph.processors)
    if wrong := sorted(known ^ set(graph.dag.vertex_list)):
        yield (
            f"processors and dag.vertexList do not name the same: {', '.join(map(str, wrong))} is "
            "in one of them only"
        )
    for number, each in graph.processors.items():
        if not _is_dotted(each.task_class):
            yield f"processor {number}: {each.task_class!r} is no dotted name of a class"
    for source, partitioner, target in graph.dag.edge_list:
        if unknown := {source, target} - known:
            yield f"an edge names processor {min(unknown)}, which is not there"
        if not _is_dotted(_own_name(partitioner)):
            yield f"edge {source} -> {target}: {partitioner!r} is no name of a partitioner"


def _lines(graph: SubmittedGraph) -> Iterator[str]:
    name = re.sub(r"[^\w .-]", "?", graph.app_name)
    yield f'"""Made of the graph {name}, which was submitted as JSON."""'
    yield ""
    yield "import gearpy as gp"
    for number, each in graph.processors.items():
        module, _, name = each.task_class.rpartition(".")
        yield f"from {module} import {name} as Task{_id(number)}"
    for index, (_, partitioner, _) in enumerate(graph.dag.edge_list):
        module, _, name = _own_name(partitioner).rpartition(".")
        yield f"from {module} import {name} as Partitioner{index}"
    yield ""
    for number, each in graph.processors.items():
        yield (
            f"processor{_id(number)} = gp.Processor(Task{_id(number)}, "
            f"parallelism={each.parallelism!r}, name={each.description!r}, "
            f"config={each.task_conf or {}!r})"
        )
    yield "graph = gp.Graph()"
    yield from (f"graph.add(processor{_id(number)})" for number in graph.processors)
    for index, (source, _, target) in enumerate(graph.dag.edge_list):
        yield (
            f"graph.connect(processor{_id(source)}, processor{_id(target)}, Partitioner{index}())"
        )
    yield f"app = gp.StreamApplication({graph.app_name!r}, graph)"


def _own_name(partitioner: str) -> str:
    name = partitioner.rpartition(".")[2]
    is_known = partitioner == name or partitioner.startswith(_GEARPUMP)
    return f"gearpy.{name}" if is_known and name in _BUILTIN else partitioner


def _is_dotted(name: str) -> bool:
    is_name = _NAME.fullmatch(name) is not None and "." in name
    return is_name and not any(keyword.iskeyword(part) for part in name.split("."))


def _id(number: int) -> str:
    return f"{number}" if number >= 0 else f"_{-number}"
