"""The way from a source to a sink as a plan that another engine can run, or why it cannot.

Taken are bounded sources, functions over records and over batches, and aggregates of windows of
event time; every other step is refused by name. What a step does beside, as logging, belongs to
the stream: `inspect` and `log` are passed over.
"""

from collections.abc import Sequence
from typing import Any

from gearpy.dsl.operators.groups import Grouping
from gearpy.dsl.operators.operator import Operator, ReadOperator, Refusal, TwinPlace
from gearpy.dsl.operators.routes import BranchOperator, WriteOperator
from gearpy.errors import ConfigError
from gearpy.spark.query.plan import LinearPlan, RowsStep, Step


def linear_plans(app: str, steps: Sequence[Operator], *, endless: bool = False) -> list[LinearPlan]:
    sinks = [step for step in steps if isinstance(step, WriteOperator)]
    if not sinks:
        raise ConfigError(f"application {app!r} writes nothing: end a stream with .write(...)")
    return [_plan(app, sink, endless=endless) for sink in sinks]


def linear_plan(app: str, steps: Sequence[Operator], sink: str | int | None = None) -> LinearPlan:
    return _plan(app, sink_of(app, steps, sink), endless=False)


def sink_of(app: str, steps: Sequence[Operator], sink: str | int | None) -> WriteOperator:
    sinks = [step for step in steps if isinstance(step, WriteOperator)]
    shown = ", ".join(f"{at} ({step.name})" for at, step in enumerate(sinks)) or "none"
    if sink is None and len(sinks) == 1:
        return sinks[0]
    if sink is None:
        raise ConfigError(f"application {app!r} has {len(sinks)} sinks, say which: {shown}")
    found = [n for at, n in enumerate(sinks) if sink in {at, n.name} and type(sink) is not bool]
    if len(found) != 1:
        raise ConfigError(f"application {app!r} has no one sink {sink!r}: there are {shown}")
    return found[0]


def path_to(sink: WriteOperator) -> list[Operator]:
    """Return the steps from the source to a sink; before a step with several inputs it ends."""
    path: list[Operator] = [sink]
    while len(path[-1].inputs) == 1:
        path.append(path[-1].inputs[0])
    return path[::-1]


def _plan(app: str, sink: WriteOperator, *, endless: bool) -> LinearPlan:
    path = path_to(sink)
    steps: list[Step] = []
    mistakes: list[str] = []
    is_grouped = False
    for step in path:
        made = step.twin(TwinPlace(is_grouped=is_grouped, takes_endless=endless))
        if isinstance(made, Refusal):
            what = f"{step.kind or 'step'} {step.name!r}{place_of(step)}"
            mistakes.append(f"{sink.name}: {what} has no Spark query: {made.reason}")
        elif isinstance(made, RowsStep) and steps and isinstance(before := steps[-1], RowsStep):
            # Functions over records that follow each other are one step.
            operators = (*before.operators, *made.operators)
            steps[-1] = RowsStep(operators=operators, takes=before.takes)
        elif made is not None:
            steps.append(made)
        is_grouped = is_grouped or isinstance(step, Grouping)
    if mistakes:
        raise ConfigError(*mistakes)
    source = path[0]
    assert isinstance(source, ReadOperator)
    return LinearPlan(
        app=app,
        sink=sink.name,
        source=source.source,
        steps=tuple(steps),
        gives=sink.inputs[0].schema_given(declared=False),
    )


def place_of(step: Operator) -> str:
    """Return where the function of a step is written, if the user wrote one that tells."""
    function = _function_of(step)
    is_own = str(getattr(function, "__module__", "")).startswith("gearpy.")
    code = getattr(function, "__code__", None)
    return "" if code is None or is_own else f" ({code.co_filename}:{code.co_firstlineno})"


def _function_of(step: Operator) -> Any:
    for name in ("operator", "function", "task"):
        found = getattr(step, name, None)
        if found is not None:
            function = getattr(found, "function", found)
            return getattr(function, "__init__", None) if isinstance(function, type) else function
    if isinstance(step, BranchOperator):
        return next(iter(step.predicates.values()))
    return None if step.key is None or step.key.columns else step.key.function
