"""Makes the actor of an app master as a launch message and the configuration ask."""

import logging
import random
from collections.abc import Callable
from typing import Final

from gearpy.cluster.app.actor import AppMasterActor
from gearpy.cluster.app.config import AppMasterSettings, application_config
from gearpy.cluster.net.limits import REPORT_INTERVAL_MS, restart_policy
from gearpy.cluster.net.masters import several_masters
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import with_serializers
from gearpy.config.schema import Config
from gearpy.core.app.decisions import RecoveryLimits
from gearpy.core.app.hosts import localities_in, with_hosts
from gearpy.core.scaling.bounds import bounds_in, with_bounds
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import SEGMENTS_MAX
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.failure import USER_ERRORS

_log = logging.getLogger(__name__)

_HOUR_MS: Final = 3_600_000
#: A record that makes its operator raise so often ends the application.
_POISON_ATTEMPTS: Final = 3


def recovery_limits(config: Config) -> RecoveryLimits:
    """Return the budgets and time-outs of an application that a configuration sets."""
    start_timeout_ms, checkpoint = config.executor.start_timeout_s * 1000, config.checkpoint
    return RecoveryLimits(
        restarts=restart_policy(config),
        poison_attempts=_POISON_ATTEMPTS,
        step_timeout_ms=start_timeout_ms // 2,
        start_timeout_ms=start_timeout_ms,
        allocation_timeout_ms=config.resource_allocation_timeout_s * 1000,
        epoch_cut=checkpoint.cut,
        epoch_pace=checkpoint.pace,
        epoch_interval_ms=checkpoint.interval_ms,
        max_overhead_percent=checkpoint.max_overhead_percent,
        max_replay_ms=checkpoint.max_replay_ms,
        epoch_timeout_ms=checkpoint.timeout_ms,
        epochs_retained=checkpoint.retained,
        stall_after_ms=config.streaming.stall_threshold_ms,
        trial_ms=config.application.trial_s * 1000,
        change_timeout_ms=config.application.drain_timeout_s * 1000,
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
        keeps_recordings=config.application.record_input_bytes > 0,
        drain_timeout_ms=config.application.drain_timeout_s * 1000,
        autoscale_cooldown_ms=config.application.autoscale_cooldown_s * 1000,
        keep_succeeded_ms=config.checkpoint.keep_succeeded * _HOUR_MS,
        masters=several_masters(config),
    )


def _prepared(
    application: StreamApplication, artifact: Artifact, config: Config
) -> StreamApplication:
    """Give an application its serializers and machines, and its processors theirs and bounds."""
    asked = config.application
    dag = with_hosts(application.dag, localities_in(asked.localities))
    application.dag = with_bounds(dag, [*map(bounds_in, asked.autoscale), *artifact.bounds])
    application.near = near_data(application)
    return with_serializers(application, config)


def near_data(application: StreamApplication) -> tuple[str, ...]:
    """Return the machines that have the data of an application; none if they cannot be told.

    A store may call a machine by its whole name, and the machine itself by the first part of it.
    """
    sources = [each.source for each in application.processors.values() if each.source]
    try:
        hosts = [host for source in sources for host in source.hosts()]
        return tuple(dict.fromkeys(name for each in hosts for name in (each, each.split(".")[0])))
    except USER_ERRORS as error:
        _log.warning("application %s: where its data is, is not known: %s", application.name, error)
        return ()


def app_master(
    launch: LaunchExecutor,
    own: Config,
    *,
    post: Post,
    checkpoints: Checkpoints,
    load: Callable[[Artifact], StreamApplication],
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
        load=lambda artifact: _prepared(
            load(artifact), artifact, application_config(own, launch.config)
        ),
        post=post,
        checkpoints=checkpoints,
        rng=random.Random(),
        release=release,
    )
