"""The settings of an application, and the keys that it may set.

An application's keys are in its coordinator log: written when it is launched for the first time,
read at each launch. A key that is not there is as the configuration of the worker has it. Samza:
the job's configuration in the coordinator stream.
"""

from collections.abc import Mapping
from typing import Final

from gearpy.cluster.net.limits import restart_policy
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.core.app.decisions import RecoveryLimits
from gearpy.errors import ConfigError

#: Keys that belong to the cluster, or to the program that talks to it, and not to an application.
NOT_OF_APPLICATIONS: Final = (
    "alerts.",
    "artifact.",
    "cluster.",
    "hostname",
    "listen-host",
    "log.",
    "master.",
    "masterclient.",
    "services.",
    "transport.",
    "worker.",
)
#: Keys by which the operator of a worker limits applications, which so cannot change them.
_OF_WORKERS: Final = (
    "alerts.",
    "hostname",
    "listen-host",
    "cluster.",
    "master.",
    "worker.",
    "log.",
    "services.",
    "transport.",
    "executor.memory-max-bytes",
    "metrics.executor-port",
)
#: Keys that are read before the coordinator log is, by the master or to find the log.
_OF_SUBMISSION: Final = ("application.executor-num", "checkpoint.folder")

#: A record that makes its operator raise so often ends the application.
_POISON_ATTEMPTS: Final = 3


def recovery_limits(config: Config) -> RecoveryLimits:
    start_timeout_ms, checkpoint = config.executor.start_timeout_s * 1000, config.checkpoint
    return RecoveryLimits(
        restarts=restart_policy(config),
        poison_attempts=_POISON_ATTEMPTS,
        retries_errors=config.application.retries_errors == "on",
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
    )


def keys_asked(asked: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in asked.items() if not key.startswith(_OF_WORKERS)}


def application_config(own: Config, asked: Mapping[str, str]) -> Config:
    return from_overrides({**as_overrides(own), **keys_asked(asked)})


def check_setting(key: str, text: str) -> None:
    from_overrides({key: text})
    if key.startswith((*NOT_OF_APPLICATIONS, *_OF_WORKERS)):
        raise ConfigError(
            f"{key} is not an application's: set it where the daemons of the cluster are configured"
        )
    if key.startswith(_OF_SUBMISSION):
        raise ConfigError(
            f"{key} counts when an application is submitted, and not when it is launched again: "
            f"stop it and go on with 'gear app submit --from-checkpoint ID --set {key}=...'"
        )


def application_overrides(config: Config) -> dict[str, str]:
    return {
        key: value
        for key, value in as_overrides(config).items()
        if not key.startswith(NOT_OF_APPLICATIONS)
    }


def of_submission(asked: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in asked.items() if key.startswith(_OF_SUBMISSION)}


def inherited(asked: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    kept = {key: text for key, text in before.items() if not key.startswith(_OF_SUBMISSION)}
    return {**kept, **asked}
