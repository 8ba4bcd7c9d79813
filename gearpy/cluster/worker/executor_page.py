"""The page of metrics of one executor: its tasks and its process, beside what others show."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from gearpy.actor.api import Ref
from gearpy.cluster.executor.measuring import MeasureExecutor, executor_data
from gearpy.cluster.host.metrics_page import metrics_page
from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.messages.cluster import LaunchExecutor
from gearpy.messages.metrics import MetricsData
from gearpy.metrics.samples import ClusterSample
from gearpy.transport.security.credentials import is_loopback
from gearpy.transport.security.tokens import TokenFile

_log = logging.getLogger(__name__)
_ANSWER_S: Final = 5.0
#: So many executors of a machine find a port beside each other.
_PORTS: Final = 100


@contextmanager
def executor_page(config: Config, launch: LaunchExecutor, actor: Future[Ref[Any]]) -> Iterator[str]:
    """Show the page as long as the context lasts; give its address, "" if it cannot be shown.

    It listens where the executor does; its address is that by which others see this host. An
    executor runs without it: why there is none is in its log.
    """
    with ExitStack() as opened:
        try:
            url = opened.enter_context(
                metrics_page(
                    f"{_listens_at(config)}:{config.metrics.executor_port}",
                    lambda: _measured(launch, actor),
                    ports=_PORTS if config.metrics.executor_port else 1,
                    allows=_rule(config),
                    config=config,
                )
            )
        except ConfigError as error:
            _log.warning("this executor shows no metrics: %s", error)
            url = ""
        host = f"[{config.hostname}]" if ":" in config.hostname else config.hostname
        yield f"{host}:{urlsplit(url).port}" if url else ""


def _listens_at(config: Config) -> str:
    return config.listen_host or config.hostname


def _measured(launch: LaunchExecutor, actor: Future[Ref[Any]]) -> ClusterSample:
    data: MetricsData
    if launch.artifact.runs == "actors" or not actor.done():  # User code may hold that actor up.
        data = executor_data(launch.app_id, launch.executor_id, launch.launch)
    else:
        data = actor.result().ask(MeasureExecutor(), _ANSWER_S)
    return ClusterSample(executors=((launch.name, data),))


def _rule(config: Config) -> Callable[[str], bool]:
    """Return the rule that the services have, too: who may look, by the header that is sent."""
    host = _listens_at(config)
    tokens, is_local = TokenFile(config.services.token_file), is_loopback(host)
    if not is_local and not tokens.tokens():
        raise ConfigError(
            f"{host} can be reached from other machines, and {tokens.path} has no "
            "tokens: copy it from where the services run; 'gear token add' makes it"
        )

    def allows(header: str) -> bool:
        kind, _, secret = header.partition(" ")
        if header:
            return kind.lower() == "bearer" and tokens.find(secret.strip()) is not None
        return is_local and not tokens.tokens()

    return allows
