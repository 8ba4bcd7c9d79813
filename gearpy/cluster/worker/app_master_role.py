"""Makes the actor of an app master as a launch message and the configuration ask."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gearpy.cluster.app.actor import AppMasterActor
from gearpy.cluster.app.config import AppMasterSettings, application_config
from gearpy.cluster.net.limits import REPORT_INTERVAL_MS, restart_policy
from gearpy.cluster.net.masters import several_masters
from gearpy.cluster.net.post import Post
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.trial import ProgramTrials
from gearpy.cluster.programs.artifacts import load as load_object
from gearpy.cluster.programs.outline import (
    LoadedProgram,
    LoadProgram,
    OutlineDifferences,
    outline_of,
)
from gearpy.config.schema import Config
from gearpy.core.app.decisions import RecoveryLimits
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import SEGMENTS_MAX

_HOUR_MS: Final = 3_600_000
#: A record that makes its operator raise so often ends the application.
_POISON_ATTEMPTS: Final = 3


def app_master_settings(config: Config) -> AppMasterSettings:
    start_timeout_ms, checkpoint = config.executor.start_timeout_s * 1000, config.checkpoint
    return AppMasterSettings(
        limits=RecoveryLimits(
            restarts=restart_policy(config),
            poison_attempts=_POISON_ATTEMPTS,
            step_timeout_ms=start_timeout_ms // 2,
            start_timeout_ms=start_timeout_ms,
            allocation_timeout_ms=config.resource_allocation_timeout_s * 1000,
            epoch_cut=checkpoint.cut,
            epoch_interval_ms=checkpoint.interval_ms,
            max_overhead_percent=checkpoint.max_overhead_percent,
            epoch_timeout_ms=checkpoint.timeout_ms,
            epochs_retained=checkpoint.retained,
            stall_after_ms=config.streaming.stall_threshold_ms,
            trial_ms=config.application.trial_s * 1000,
            change_timeout_ms=config.application.drain_timeout_s * 1000,
            steps_over=config.application.on_error != "fail",
        ),
        tick_ms=REPORT_INTERVAL_MS,
        reconnect_timeout_ms=config.cluster.reconnect_timeout_s * 1000,
        quarantine_max=config.application.quarantine_max_records,
        log_segments_max=SEGMENTS_MAX,
        has_changelog=config.checkpoint.changelog == "on",
        keeps_recordings=config.application.record_input_bytes > 0,
        drain_timeout_ms=config.application.drain_timeout_s * 1000,
        autoscale_cooldown_ms=config.application.autoscale_cooldown_s * 1000,
        keep_succeeded_ms=config.checkpoint.keep_succeeded * _HOUR_MS,
        masters=several_masters(config),
    )


def program_loader(
    config: Config, folder_of: Callable[[Artifact], Path | None], forks: ForkServer | None = None
) -> LoadProgram:
    """Return a function that loads programs in processes of their own; objects are in this one."""
    trials = ProgramTrials(config, forks=forks)

    def load(artifact: Artifact, compared: Artifact | None) -> LoadedProgram:
        found = OutlineDifferences(why_unknown="only one of them was uploaded")
        if artifact.kind == "memory":
            outline = outline_of(load_object(artifact), artifact, config)
        elif compared is None or compared.kind == "memory":
            outline, _ = trials.load(artifact, folder_of(artifact))
        else:
            beside = compared, folder_of(compared)
            outline, found = trials.load(artifact, folder_of(artifact), compared=beside)
        outline.check_submitted()
        return LoadedProgram(
            artifact=artifact, outline=outline, compared=compared, differences=found
        )

    return load


def app_master(
    launch: LaunchExecutor,
    own: Config,
    *,
    post: Post,
    checkpoints: Checkpoints,
    folder_of: Callable[[Artifact], Path | None],
    forks: ForkServer | None = None,
) -> AppMasterActor:
    """Return the actor of an app master; for ``folder_of`` and ``forks`` see `program_loader`.

    ``own`` is the worker's configuration, without what the application sets.
    """
    return AppMasterActor(
        launch,
        lambda asked: app_master_settings(application_config(own, asked)),
        load=program_loader(application_config(own, launch.config), folder_of, forks),
        post=post,
        checkpoints=checkpoints,
        rng=random.Random(),
    )
