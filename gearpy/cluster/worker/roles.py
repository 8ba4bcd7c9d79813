"""From a launch message and the configuration to the actor of an executor or an app master."""

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.cluster.app.actor import AppMasterActor, AppMasterSettings
from gearpy.cluster.app.config import application_config
from gearpy.cluster.executor.actor import ExecutorActor, ExecutorSettings
from gearpy.cluster.host.tuning import ProcessTuning
from gearpy.cluster.net.limits import (
    REPORT_INTERVAL_MS,
    monotonic_ms,
    output_limits,
    restart_policy,
    state_settings,
    task_limits,
    wall_ms,
)
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import with_serializers
from gearpy.config.schema import Config
from gearpy.core.app.application import RecoveryLimits
from gearpy.messages.cluster import LaunchExecutor
from gearpy.state.open import open_state
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import SEGMENTS_MAX
from gearpy.task.api.application import StreamApplication
from gearpy.task.runtime.metering import MeterSettings
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
) -> ExecutorActor:
    """Return the actor of an executor; it closes its transport and dispatcher when it stops.

    ``make_transport`` is given whom to tell about lost links; ``release`` is called at the end;
    ``is_process`` tells that it has a process of its own.
    """
    return ExecutorActor(
        executor_settings(launch, config, dispatcher, is_process=is_process),
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
    """Return the threads of an executor's tasks."""
    return SharedDispatcher(
        turn_ms=_TURN_MS,
        name=f"app{launch.app_id}-executor{launch.executor_id}-{launch.launch}",
    )


def executor_settings(
    launch: LaunchExecutor,
    config: Config,
    dispatcher: SharedDispatcher,
    *,
    clock_ms: Callable[[], int] = monotonic_ms,
    is_process: bool = True,
) -> ExecutorSettings:
    """Return the settings of an executor."""
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
    """Return the factory of an executor's tasks; ``now_ms`` is wall time.

    ``coroutines`` runs those of user code; None: on a thread of the executor.
    """
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
    )


_HOUR_MS: Final = 3_600_000
#: A record that makes its operator raise so often ends the application.
_POISON_ATTEMPTS: Final = 3


def recovery_limits(config: Config) -> RecoveryLimits:
    """Return the budgets and time-outs of an application that a configuration sets."""
    streaming, checkpoint = config.streaming, config.checkpoint
    return RecoveryLimits(
        restarts=restart_policy(config),
        poison_attempts=_POISON_ATTEMPTS,
        step_timeout_ms=streaming.register_task_timeout_ms,
        start_timeout_ms=config.executor.start_timeout_s * 1000,
        allocation_timeout_ms=config.resource_allocation_timeout_s * 1000,
        epoch_cut=checkpoint.cut,
        epoch_pace=checkpoint.pace,
        epoch_interval_ms=checkpoint.interval_ms,
        max_overhead_percent=checkpoint.max_overhead_percent,
        max_replay_ms=checkpoint.max_replay_ms,
        epoch_timeout_ms=checkpoint.timeout_ms,
        epochs_retained=checkpoint.retained,
        stall_after_ms=streaming.stall_threshold_ms,
    )


def app_master_settings(config: Config) -> AppMasterSettings:
    """Return the settings of an app master."""
    return AppMasterSettings(
        limits=recovery_limits(config),
        tick_ms=REPORT_INTERVAL_MS,
        reconnect_timeout_ms=config.cluster.reconnect_timeout_s * 1000,
        quarantine_max=config.application.quarantine_max_records,
        log_segments_max=SEGMENTS_MAX,
        has_changelog=config.checkpoint.changelog == "on",
        drain_timeout_ms=config.application.drain_timeout_s * 1000,
        keep_succeeded_ms=config.checkpoint.keep_succeeded * _HOUR_MS,
    )


def app_master(
    launch: LaunchExecutor,
    own: Config,
    *,
    post: Post,
    checkpoints: Checkpoints,
    load: Callable[[], StreamApplication],
    release: Callable[[], None] = lambda: None,
) -> AppMasterActor:
    """Return the actor of an app master; ``release`` is called at the end.

    ``own`` is the worker's configuration, without what the application sets.

    Raises:
        ConfigError: the application was submitted with something wrong.
    """
    return AppMasterActor(
        launch,
        lambda asked: app_master_settings(application_config(own, asked)),
        load=lambda: with_serializers(load(), application_config(own, launch.config)),
        post=post,
        checkpoints=checkpoints,
        rng=random.Random(),
        release=release,
    )
