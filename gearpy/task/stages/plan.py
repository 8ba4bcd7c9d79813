"""The physical plan of an application as data, for people and programs that look at it."""

from collections.abc import Sequence

from msgspec import Struct

from gearpy.core.dag.graph import EdgeSpec, ProcessorSpec, StepSpec, regions_of
from gearpy.ids import ProcessorId
from gearpy.task.api.application import StreamApplication
from gearpy.task.stages.guarantees import guarantees_of
from gearpy.views.model import (
    AppView,
    EdgeView,
    Headline,
    ProcessorFigures,
    Role,
    TotalsView,
)

_GROUP_BY = "group-by"


class PlannedProcessor(Struct, frozen=True, kw_only=True):
    """Steps that run in one task after the other, and how many such tasks there are.

    ``kind`` names the class of the task; ``level`` is the length of the longest way from a source.
    """

    number: ProcessorId
    name: str
    parallelism: int
    level: int
    kind: str
    steps: tuple[StepSpec, ...]


class PlannedEdge(Struct, frozen=True, kw_only=True):
    """An edge of the plan: how its records are spread, and their form."""

    source: ProcessorId
    target: ProcessorId
    spread: str
    form: str


class PlannedPath(Struct, frozen=True, kw_only=True):
    """The promise from a source to a sink, and the reason why it is no more."""

    source: str
    sink: str
    guarantee: str
    weakest_link: str


class PhysicalPlan(Struct, frozen=True, kw_only=True):
    """The processors and edges that will run.

    ``regions`` are the connected parts, which restart by themselves. ``alike`` are ids of steps
    that keep something and are told apart by their order in the program alone.
    """

    name: str
    processors: tuple[PlannedProcessor, ...]
    edges: tuple[PlannedEdge, ...]
    paths: tuple[PlannedPath, ...]
    regions: int
    alike: tuple[tuple[str, ...], ...] = ()

    @property
    def tasks(self) -> int:
        return sum(each.parallelism for each in self.processors)

    def _repr_html_(self) -> str:
        from gearpy.views.notebook import plan_html  # noqa: PLC0415 - only in notebooks

        paths = [f"{each.source} → {each.sink}: {each.guarantee}" for each in self.paths]
        view = AppView(  # At no time.
            at_ms=0,
            app_id=0,
            name=self.name,
            status="pending",
            user="",
            submitted_ms=0,
            started_ms=0,
            finished_ms=0,
            headline=Headline(level="ok", text=""),
            totals=TotalsView(),
            processors=tuple(map(self._figures, self.processors)),
            edges=tuple(
                EdgeView(source=each.source, target=each.target, partitioner=each.spread)
                for each in self.edges
            ),
        )
        return plan_html(view, about=paths)

    def _figures(self, processor: PlannedProcessor) -> ProcessorFigures:
        behind: Role = "step" if self.edges_of(processor.number) else "sink"
        return ProcessorFigures(
            id=processor.number,
            name=processor.name,
            role=behind if processor.level else "source",
            parallelism=processor.parallelism,
            steps=tuple(step.name for step in processor.steps),
        )

    def edges_of(self, number: ProcessorId) -> list[PlannedEdge]:
        return [each for each in self.edges if each.source == number]


def physical_plan(application: StreamApplication) -> PhysicalPlan:
    dag = application.dag
    levels = dag.levels
    processors = tuple(
        PlannedProcessor(
            number=pid,
            name=dag.processors[pid].name,
            parallelism=dag.processors[pid].parallelism,
            level=levels[pid],
            kind=dag.processors[pid].kind,
            steps=dag.processors[pid].steps,
        )
        for pid in dag.order
    )
    return PhysicalPlan(
        name=application.name,
        processors=processors,
        edges=tuple(
            _edge(edge, dag.processors[edge.source], dag.processors[edge.target])
            for edge in dag.edges
        ),
        paths=tuple(
            PlannedPath(
                source=path.source,
                sink=path.sink,
                guarantee=path.guarantee.value,
                weakest_link=str(path.weakest or ""),
            )
            for path in guarantees_of(application)
        ),
        regions=len(regions_of(dag)),
        alike=_alike([step.id for each in processors for step in each.steps if step.keeps]),
    )


def _edge(edge: EdgeSpec, source: ProcessorSpec, target: ProcessorSpec) -> PlannedEdge:
    spread = edge.partitioner
    key = target.steps[0].key
    if spread.startswith(_GROUP_BY) and key:
        spread = f"by {key}{spread.removeprefix(_GROUP_BY)}"
    is_columns = (source.steps[-1].gives, target.steps[0].takes) == ("columns", "columns")
    return PlannedEdge(
        source=edge.source,
        target=edge.target,
        spread=spread,
        form="columns" if is_columns else "rows",
    )


def _alike(ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return ids that differ in their number only."""
    return tuple(
        (name, *same)
        for name in ids
        if (
            same := [
                each
                for each in ids
                if each.startswith(f"{name}-") and each.removeprefix(f"{name}-").isdigit()
            ]
        )
    )
