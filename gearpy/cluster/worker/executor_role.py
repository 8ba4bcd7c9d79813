"""Makes the actor of an executor as a launch message and the configuration ask."""

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.clocks import monotonic_ms, wall_ms
from gearpy.cluster.executor.actor import ExecutorActor, ExecutorSettings
from gearpy.cluster.host.task_limits import output_limits, state_settings, task_limits
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.limits import REPORT_INTERVAL_MS
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import with_serializers
from gearpy.config.schema import Config
from gearpy.messages.cluster import LaunchExecutor
from gearpy.state.open import open_state
from gearpy.storage.checkpoints import Checkpoints
from gearpy.task.api.application import StreamApplication
from gearpy.task.runtime.metering import MeterSettings
from gearpy.task.runtime.recording import recorder
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.transport.api import LinkLost, Transport
from gearpy.transport.loop.coroutines import Coroutines, CoroutineThread

#: After so long a task lets its neighbours on the shared dispatcher go on.
_TURN_MS: Final = 2
#: A mailbox with so many messages refuses the next: a growing queue hides a slow actor.
_MAILBOX_MAX: Final = 100_000
#: After so many files of one executor an epoch is written as a whole. More make epochs cheaper
#: and restarts slower.
_CHAIN_FILES_MAX: Final = 16


def executor(
    launch: LaunchExecutor,
    config: Config,
    *,
    post: Post,
    checkpoints: Checkpoints,
    load: Callable[[], StreamApplication],
    make_transport: Callable[[LinkLost], Transport],
    dispatcher: SharedDispatcher,
    tuning: ProcessTuning,
    release: Callable[[], None] = lambda: None,
    is_process: bool = True,
    metrics_address: str = "",
) -> ExecutorActor:
    """Return the actor of an executor; it closes its transport and dispatcher when it stops.

    ``make_transport`` is given whom to tell about lost links; ``release`` is called at the end;
    ``is_process`` tells that it has a process of its own, with a page at ``metrics_address``.
    """
    return ExecutorActor(
        executor_settings(
            launch, config, dispatcher, is_process=is_process, metrics_address=metrics_address
        ),
        runners=lambda: runner_factory(
            launch, config, with_serializers(load(), config), rng=random.Random()
        ),
        make_transport=make_transport,
        post=post,
        checkpoints=checkpoints,
        tuning=tuning,
        release=release,
    )


def new_dispatcher(launch: LaunchExecutor) -> SharedDispatcher:
    return SharedDispatcher(
        turn_ms=_TURN_MS, name=f"app{launch.app_id}-executor{launch.executor_id}-{launch.launch}"
    )


def executor_settings(
    launch: LaunchExecutor,
    config: Config,
    dispatcher: SharedDispatcher,
    *,
    clock_ms: Callable[[], int] = monotonic_ms,
    is_process: bool = True,
    metrics_address: str = "",
) -> ExecutorSettings:
    return ExecutorSettings(
        app_id=launch.app_id,
        executor_id=launch.executor_id,
        launch=launch.launch,
        slots=launch.slots,
        app_master=launch.reply_to,
        dispatcher=dispatcher,
        pin_tasks=config.task_dispatcher == "pinned",
        mailbox_max=_MAILBOX_MAX,
        report_interval_ms=REPORT_INTERVAL_MS,
        metrics_interval_ms=config.metrics.report_interval_ms,
        checkpoints_prefix=launch.store_prefix,
        chain_files_max=_CHAIN_FILES_MAX,
        clock_ms=clock_ms,
        turn_timeout_ms=config.executor.turn_timeout_s * 1000,
        is_process=is_process,
        metrics_address=metrics_address,
    )


def runner_factory(
    launch: LaunchExecutor,
    config: Config,
    application: StreamApplication,
    *,
    rng: random.Random,
    clock_ms: Callable[[], int] = monotonic_ms,
    now_ms: Callable[[], int] = wall_ms,
    coroutines: Coroutines | None = None,
) -> RunnerFactory:
    return RunnerFactory(
        application=application,
        output=output_limits(config),
        limits=task_limits(config),
        turn_ms=_TURN_MS,
        clock_ms=clock_ms,
        wall_ms=now_ms,
        rng=rng,
        app_id=launch.app_id,
        executor_id=launch.executor_id,
        on_error=config.application.on_error,
        run=launch.store_prefix,
        open_state=partial(open_state, state_settings(config)),
        coroutines=coroutines or CoroutineThread(),
        metering=MeterSettings() if config.metrics.report_interval_ms else None,
        recorder=recorder(
            config.application.record_input_bytes,
            now_ms,
            every=config.application.record_input_epochs,
        ),
    )
