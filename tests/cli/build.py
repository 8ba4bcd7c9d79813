"""A cluster that answers clients with what it is made of, and a command line that asks it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.ids import AppId, ExecutorId, WorkerId
from gearpy.messages.actor_app import AppMasterAnswer, AskAppMaster
from gearpy.messages.client import (
    Accepted,
    AlertList,
    ApplicationList,
    ClusterSummary,
    DescribeApplication,
    DrainApplication,
    DrainWorker,
    GetAlerts,
    GetApplication,
    GetCluster,
    GetEpochs,
    GetMaster,
    GetPlan,
    GetSubmission,
    GetVersions,
    ListApplications,
    ListQuarantined,
    ListWorkers,
    LogText,
    MakeSavepoint,
    PlannedMove,
    PlanText,
    ProcessDetail,
    QuarantinedList,
    QuarantinedRecord,
    ReadLog,
    Refused,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    SavepointMade,
    ShutdownApplication,
    Submission,
    Submitted,
    UpdateApplication,
    UpdatePlanned,
    VersionList,
    VersionSummary,
    WorkerDrains,
    WorkerList,
)
from gearpy.messages.masters import GetMasters, MasterDisk, MasterList, MasterSummary
from gearpy.messages.metrics import GetMetrics, GetProcessMetrics
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationProgress,
    ApplicationSummary,
    ClockHolderSummary,
    EdgeSummary,
    EpochsSummary,
    ErrorCard,
    ExecutorSummary,
    Failure,
    ProcessorSummary,
    RegionSummary,
    ScaleBounds,
    ScaledStep,
    WorkerSummary,
)
from gearpy.wire.values.payload import encode_value

NOON_MS: Final = 1_767_268_800_000  # 2026-01-01T12:00:00Z
_LIVED_MS: Final = 185_000

CARD: Final = ErrorCard(
    cause="ValueError: could not convert string to float: 'n/a'",
    operator="map(price)",
    task="1.0",
    source="/home/ada/shop.py:12",
    source_line='return float(order["price"])',
    record="{'id': 17, 'price': 'n/a'}",
    event_time_ms=NOON_MS,
    traceback="Traceback (most recent call last):\n  the user's frames",
)
_PROGRESS: Final = ApplicationProgress(
    records_in=120_000,
    records_out=4_512,
    late_records=3,
    quarantined_records=2,
    restarts=1,
    epoch=181,
    watermark_ms=NOON_MS,
)


def _applications() -> list[ApplicationSummary]:
    began_ms = time.time_ns() // 1_000_000 - _LIVED_MS
    return [
        ApplicationSummary(
            app_id=AppId(1),
            name="clicks",
            status="succeeded",
            user="ada",
            submitted_ms=NOON_MS,
            started_ms=NOON_MS,
            finished_ms=NOON_MS + 61_000,
            progress=ApplicationProgress(records_in=10, records_out=10),
        ),
        ApplicationSummary(
            app_id=AppId(2),
            name="shop",
            status="active",
            user="ada",
            submitted_ms=began_ms,
            started_ms=began_ms + 1000,
            progress=_PROGRESS,
        ),
        ApplicationSummary(
            app_id=AppId(3),
            name="orders",
            status="failed",
            user="ada",
            submitted_ms=NOON_MS,
            started_ms=NOON_MS,
            finished_ms=NOON_MS + 4_000,
            progress=ApplicationProgress(records_in=17),
            cause=CARD,
        ),
    ]


_VERSIONS: Final = (
    VersionSummary(
        number=0,
        filename="shop.py",
        args=(),
        scale=(),
        change="submitted",
        by="",
        at_ms=0,
        state="replaced",
        reason="",
        epoch=0,
    ),
    VersionSummary(
        number=1,
        filename="shop.py",
        args=(),
        scale=(("visits-1", 4),),
        change="scale visits-1=4",
        by="ada",
        at_ms=NOON_MS,
        state="running",
        reason="",
        epoch=182,
    ),
)
_DETAIL: Final = ApplicationDetail(
    app_id=AppId(2),
    executors=(
        ExecutorSummary(
            executor_id=ExecutorId(0),
            launch=1,
            worker_id=WorkerId(0),
            slots=2,
            status="running",
            pid=4711,
            data_address="127.0.0.1:41001",
            tasks=("0.0", "1.0"),
        ),
        ExecutorSummary(
            executor_id=ExecutorId(1), launch=2, worker_id=WorkerId(1), slots=1, status="launching"
        ),
    ),
    processors=(
        ProcessorSummary(
            processor_id=0,
            name="files",
            parallelism=1,
            clock_ms=NOON_MS,
            records_in=60_000,
            records_out=60_000,
            idle_tasks=1,
        ),
        ProcessorSummary(
            processor_id=1,
            name="map(price)",
            parallelism=2,
            clock_ms=None,
            records_in=60_000,
            records_out=4_512,
            late_records=3,
            quarantined_records=2,
            steps=("map(price)",),
        ),
    ),
    edges=(EdgeSummary(source=0, target=1, partitioner="hash"),),
    regions=(RegionSummary(region=0, state="running", from_epoch=11, tasks=3),),
    scaled=(
        ScaledStep(
            step="prices",
            tasks=2,
            bounds=ScaleBounds(least=1, most=8),
            work=1.3,
            text="prices x1 to x2: work for 1.0, each is to be busy for 70%",
            at_ms=NOON_MS,
        ),
    ),
    failures=(
        Failure(at_ms=NOON_MS, what="region 0 was restarted from epoch 180", error=CARD),
        Failure(
            at_ms=NOON_MS + 2_000,
            what="executor 1 was replaced",
            error=ErrorCard(cause="executor 1 lost: killed by signal 9"),
        ),
    ),
    restarts=1,
    epoch=181,
    why=(
        ClockHolderSummary(
            task="0.0",
            name="files",
            clock_ms=NOON_MS + 5_000,
            watermark_ms=NOON_MS + 5_000,
            waits_for="source has not advanced",
        ),
        ClockHolderSummary(
            task="1.0",
            name="map(price)",
            clock_ms=NOON_MS,
            watermark_ms=NOON_MS + 4_000,
            waits_for="unacknowledged output",
        ),
        ClockHolderSummary(
            task="2.0", name="count", clock_ms=NOON_MS, watermark_ms=NOON_MS, waits_for="upstream"
        ),
    ),
    lag_ms=4_200,
    guarantees=("files(orders/*.csv) -> jsonl_folder(prices): exactly-once",),
    epochs=(
        EpochsSummary(
            region=0,
            epoch=181,
            stored_ms=NOON_MS,
            size_bytes=9_024,
            kept=2,
            aborted=1,
            last_abort="epoch 170 of region 0: not stored within 60000 ms by executor 1",
        ),
    ),
)

_WORKERS: Final = (
    WorkerSummary(
        worker_id=WorkerId(0),
        slots=8,
        free_slots=5,
        address="127.0.0.1:3001",
        executors=2,
        hosts=("machine1", "worker0"),
        rack="r1",
        version="0.1.0",
    ),
    WorkerSummary(
        worker_id=WorkerId(1), slots=8, free_slots=8, hosts=("machine2", "worker1"), version="0.1.0"
    ),
)
_LOG: Final = "2026-01-01T12:00:00Z info ready\n2026-01-01T12:00:01Z info epoch 1 stored\n"


def a_record(number: int, *, value: bytes = b"", card: ErrorCard = CARD) -> QuarantinedRecord:
    return QuarantinedRecord(
        number=number,
        processor_id=1,
        value=value,
        event_time_ms=NOON_MS,
        error=card,
        at_ms=NOON_MS + 1_000,
    )


MASTERS: Final = MasterList(
    masters=(
        MasterSummary(address="127.0.0.1:3000", role="leader"),
        MasterSummary(address="127.0.0.1:3001", role="follower", silent_ms=100),
        MasterSummary(address="127.0.0.1:3002", role="away", behind=12, away_since_ms=NOON_MS),
    ),
    term=3,
)
_DISK: Final = MasterDisk(
    version="0.1.0",
    started_ms=NOON_MS,
    folder="/var/lib/gearpy/master",
    log_bytes=482_000,
    snapshot_ms=NOON_MS,
    programs=12,
    programs_bytes=3_100_000,
    quota_bytes=16_000_000_000,
    free_bytes=90_000_000_000,
)


def masters(message: GetMasters) -> MasterList:
    if not message.with_disks:
        return MASTERS
    told = [replace(each, disk=None if each.away_since_ms else _DISK) for each in MASTERS.masters]
    return replace(MASTERS, masters=tuple(told))


@dataclass
class FakeCluster:
    """Answers each question of clients; what tests want otherwise is in ``instead``."""

    applications: list[ApplicationSummary] = field(default_factory=_applications)
    workers: tuple[WorkerSummary, ...] = _WORKERS
    detail: ApplicationDetail = _DETAIL
    records: tuple[QuarantinedRecord, ...] = (a_record(1, value=b"\x01\x02"), a_record(4))
    versions: tuple[VersionSummary, ...] = _VERSIONS
    instead: dict[type, Callable[[Any], object]] = field(default_factory=dict)
    to_all: Callable[[Any], object] | None = None
    asked: list[object] = field(default_factory=list)

    def answer(self, message: object) -> object:
        self.asked.append(message)
        if self.to_all is not None:
            return self.to_all(message)
        answers: dict[type, Callable[[Any], object]] = {
            GetCluster: lambda _: ClusterSummary(cluster_id="k3f9a1c2"),
            ListApplications: lambda _: ApplicationList(applications=tuple(self.applications)),
            GetApplication: self._application,
            GetMasters: masters,
            ListWorkers: lambda _: WorkerList(workers=self.workers),
            ShutdownApplication: self._shutdown,
            RestartApplication: self._restart,
            DescribeApplication: lambda _: self.detail,
            DrainApplication: self._drain,
            DrainWorker: self._drain_worker,
            MakeSavepoint: lambda asked: SavepointMade(
                app_id=asked.app_id, name=asked.name, epochs=((0, 182),)
            ),
            AskAppMaster: lambda asked: AppMasterAnswer(
                app_id=asked.app_id, answer=encode_value("40 of 60 trials are done")
            ),
            ReplayNow: lambda asked: ReplayAccepted(app_id=asked.app_id, epoch=181),
            ReadLog: lambda _: LogText(source="app-2/appmaster-launch-1.log", text=_LOG, launch=1),
            ListQuarantined: self._quarantined,
            GetMaster: lambda _: ProcessDetail(
                address="127.0.0.1:3000", started_ms=NOON_MS, host="ada", pid=17
            ),
            GetSubmission: lambda asked: Submission(
                app_id=asked.app_id,
                filename="shop.py",
                args=(),
                executors=2,
                config={
                    "streaming.batch-max-records": "100",
                    "checkpoint.folder": "kafka://ada:secret@broker/shop",
                },
            ),
            GetAlerts: lambda _: AlertList(alerts=()),
            UpdateApplication: self._update,
            GetVersions: lambda asked: VersionList(app_id=asked.app_id, versions=self.versions),
            GetProcessMetrics: lambda _: Refused(reason="nothing is measured here"),
            GetPlan: lambda asked: PlanText(app_id=asked.app_id, text='{"paths": []}'),
            GetEpochs: lambda _: Refused(reason="no epoch is kept here"),
            GetMetrics: lambda _: Refused(reason="nothing is measured here"),
            ReplayQuarantined: self._quarantined,
            **self.instead,
        }
        return answers[type(message)](message)

    def asked_of(self, cls: type) -> list[Any]:
        return [each for each in self.asked if isinstance(each, cls)]

    def _update(self, asked: UpdateApplication) -> object:
        number, tasks = 1, "x2 to x4"
        if asked.version is not None:  # Back to the one before it.
            number, tasks = 2, "x4 to x2"
            self.versions += (replace(self.versions[-1], number=number, epoch=240),)
        moves = (
            ("files-1", "files", "kept files [files-1]: places in files"),
            ("visits-1", "Visits", f"kept Visits [visits-1]: {tasks}: what its task keeps by key"),
        )
        return UpdatePlanned(
            app_id=asked.app_id,
            version=number,
            at_event_ms=asked.at_event_ms,
            moves=tuple(
                PlannedMove(step=step, name=name, fate="kept", is_lost=False, text=told)
                for step, name, told in moves
            ),
        )

    def _application(self, asked: GetApplication) -> object:
        found = [each for each in self.applications if each.app_id == asked.app_id]
        return found[0] if found else Refused(reason=f"no application has id {asked.app_id}")

    def _shutdown(self, asked: ShutdownApplication) -> object:
        self.applications = [
            replace(each, status="terminated") if each.app_id == asked.app_id else each
            for each in self.applications
        ]
        return Accepted(app_id=asked.app_id)

    def _drain(self, asked: DrainApplication) -> object:
        progress = ApplicationProgress(epoch=182, drained=True, savepoint=asked.savepoint)
        self.applications = [
            replace(each, status="terminated", progress=progress)
            if each.app_id == asked.app_id
            else each
            for each in self.applications
        ]
        return Accepted(app_id=asked.app_id)

    def _drain_worker(self, asked: DrainWorker) -> object:
        (leaving,) = (each for each in self.workers if each.worker_id == asked.worker_id)
        self.workers = tuple(each for each in self.workers if each is not leaving)
        return WorkerDrains(executors=leaving.executors)

    def _restart(self, asked: RestartApplication) -> object:
        old = next(each for each in self.applications if each.app_id == asked.app_id)
        self.applications.append(replace(old, app_id=AppId(4), status="pending", cause=None))
        return Submitted(app_id=AppId(4))

    def _quarantined(self, asked: ListQuarantined | ReplayQuarantined) -> object:
        chosen = [each for each in self.records if each.number in (asked.numbers or (1, 4))]
        return QuarantinedList(app_id=asked.app_id, records=tuple(chosen))


@dataclass
class Gear:
    cluster: FakeCluster
    address: str
    secret_file: Path

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run a command that ends with an exit code; return what it says."""
        where = ("--master", self.address, "--set", f"transport.secret-file={self.secret_file}")
        result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*args, *where])
        assert result.exit_code == code, result.output
        if code:
            assert "Traceback" not in result.stderr
            return str(result.stderr)
        assert result.stderr == ""
        return str(result.stdout)
