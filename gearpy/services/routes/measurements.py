"""Routes of measurements by Gearpump's names, and of the series that the page draws."""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Query

from gearpy.cluster.client.client import ClusterClient
from gearpy.ids import AppId
from gearpy.messages.metrics import GetHistory, HistoryData, ReadOption, SeriesData, SeriesSpan
from gearpy.metrics.aggregators import AGGREGATORS
from gearpy.services.deps import AppIdInPath, Client
from gearpy.services.gearpump.shapes import MetricItem, MetricsShape, MetricValue
from gearpy.services.problems import ProblemRaised
from gearpy.services.routes.cluster import WorkerIdInPath

router: Final = APIRouter(tags=["measurements"])

_PATH_CHARS_MAX: Final = 200
_TIME_MAX: Final = 2**53 - 1
_NUMBER_MAX: Final = 2**31 - 1
_LIMIT_MAX: Final = 1000
#: Names of classes as Gearpump has them; what they are here is in the answer of nobody.
_TYPES: Final = {"histogram": "Histogram", "meter": "Meter", "gauge": "Gauge"}
_EVENTS_PER_S: Final = "events/s"
_SNAKE: Final = {"meanRate": "mean_rate"}

MetricPath: TypeAlias = Annotated[
    str, Path(max_length=_PATH_CHARS_MAX, description="A prefix; * is any text, ? any letter.")
]
MetricOption: TypeAlias = Annotated[ReadOption, Query(alias="readOption")]
_Bound: TypeAlias = Annotated[int, Query(ge=-1, le=_NUMBER_MAX)]


@router.get("/appmaster/{app_id}/series")
def get_series(
    client: Client,
    app_id: AppIdInPath,
    since_ms: Annotated[int, Query(ge=0, le=_TIME_MAX, description="What came after it.")] = 0,
    within: Annotated[SeriesSpan, Query(description="A point every 2 s, 20 s, or 5 min.")] = "10m",
) -> SeriesData:
    """Return the last ten minutes of an application, an hour, or a day, in a few hundred points."""
    return client.series(app_id, since_ms, within=within)


@router.get("/master/metrics/{path}", response_model_exclude_none=True)
def get_master_metrics(
    client: Client, path: MetricPath, option: MetricOption = "readLatest"
) -> MetricsShape:
    """Return measurements of the master's process."""
    return metrics_of(client, path, option)


@router.get("/worker/{worker_id}/metrics/{path}", response_model_exclude_none=True)
def get_worker_metrics(
    client: Client, worker_id: WorkerIdInPath, path: MetricPath, option: MetricOption = "readLatest"
) -> MetricsShape:
    """Return measurements of a worker's process."""
    return metrics_of(client, path, option, worker_id=worker_id)


@router.get("/appmaster/{app_id}/metrics/{path}", response_model_exclude_none=True)
def get_application_metrics(
    client: Client,
    app_id: AppIdInPath,
    path: MetricPath,
    option: MetricOption = "readLatest",
    *,
    aggregator: Annotated[
        str,
        Query(
            max_length=_PATH_CHARS_MAX,
            description="ProcessorAggregator or TaskFilterAggregator; a package is ignored.",
        ),
    ] = "",
    start_processor: Annotated[_Bound, Query(alias="startProcessor")] = -1,
    end_processor: Annotated[_Bound, Query(alias="endProcessor")] = -1,
    start_task: Annotated[_Bound, Query(alias="startTask")] = -1,
    end_task: Annotated[_Bound, Query(alias="endTask")] = -1,
    limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_MAX,
) -> MetricsShape:
    """Return measurements of tasks and executors."""
    aggregator = aggregator.rpartition(".")[2]
    if aggregator and aggregator not in AGGREGATORS:
        known = " and ".join(AGGREGATORS)
        raise ProblemRaised(400, f"there is no aggregator {aggregator}", f"there are {known}")
    return metrics_of(
        client,
        path,
        option,
        app_id=app_id,
        aggregator=aggregator,
        start_processor=start_processor,
        end_processor=end_processor,
        start_task=start_task,
        end_task=end_task,
        limit=limit,
    )


def metrics_of(
    client: ClusterClient, path: str, option: ReadOption, app_id: AppId | None = None, **more: Any
) -> MetricsShape:
    question = GetHistory(path=path, read_option=option, app_id=app_id, **more)
    data: HistoryData = client.ask(question)
    found = []
    for each in data.items:
        values: dict[str, Any] = {_SNAKE.get(key, key): value for key, value in each.values.items()}
        if each.kind == "meter":
            values["rate_unit"] = _EVENTS_PER_S
        kind = f"org.apache.gearpump.metrics.Metrics.{_TYPES[each.kind]}"
        value = MetricValue.model_validate({"$type": kind, "name": each.name, **values})
        found.append(MetricItem(time=each.at_ms, value=value))
    return MetricsShape(path=path, metrics=found)
