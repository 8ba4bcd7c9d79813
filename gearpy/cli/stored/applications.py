"""Applications as they are in the checkpoint store, whether or not there is a cluster."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec.structs import replace

from gearpy.cli.terminal.options import Given
from gearpy.cluster.checkpoints.reading import find_application, open_store
from gearpy.config.schema import Config
from gearpy.core.coordinator.log import CoordinatorMessage
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication, GetCluster
from gearpy.storage.checkpoints import Checkpoints
from gearpy.views import text

STOP_FIRST: Final = "stop it first"
OR_FORCE: Final = f"{STOP_FIRST}, or use --force: then its app master ends, and is launched again"

#: A master that is there answers at once.
_ANSWER_S: Final = 3
#: An application stores an epoch every second, if nothing is wrong.
_RECENT_MS: Final = 60_000
#: What a command has appended to the log says nothing about whether the application runs.
_TOOLS: Final = "gear "


class StoredApplication(NamedTuple):
    """An application in a checkpoint store: everything of it is below ``prefix``."""

    app_id: AppId
    checkpoints: Checkpoints
    prefix: str


def find_stored(given: Given, app: str, config: Config | None = None) -> StoredApplication:
    """Find an application by its number or name, where the options of a command say."""
    config = config or given.config()
    place = given.checkpoints or config.checkpoint.folder
    store = open_store(place)
    try:
        prefix = find_application(store, app, cluster=given.cluster)
    except OSError as error:
        raise ConfigError(f"checkpoint store {place} cannot be read: {error}") from error
    return StoredApplication(AppId(int(prefix.rpartition("app")[2])), store, prefix)


def refuse_while_running(
    config: Config,
    stored: StoredApplication,
    messages: Iterable[CoordinatorMessage],
    *,
    now_ms: int,
    advice: str,
) -> None:
    """Refuse to change an application that runs, or may do so.

    The master knows. Where it does not answer, or is of another cluster, the application is taken
    to run if something was written a short time ago.
    """
    from gearpy.cli.terminal.connect import connected

    status: str | None = None
    quick = replace(config.masterclient, timeout_s=min(config.masterclient.timeout_s, _ANSWER_S))
    with suppress(GearpyError), connected(replace(config, masterclient=quick)) as client:
        if client.ask(GetCluster()).cluster_id == stored.prefix.rpartition("/")[0]:
            status = client.ask(GetApplication(app_id=stored.app_id)).status
    if status in TERMINAL:
        return
    if status is not None:
        raise ConfigError(f"application {stored.app_id} is {status}: {advice}")
    written = (each.timestamp_ms for each in messages if not each.source.startswith(_TOOLS))
    age_ms = max(0, now_ms - max(written, default=0))
    if age_ms < _RECENT_MS:
        raise ConfigError(
            f"no master says whether application {stored.app_id} runs, and something was written "
            f"to its log {text.duration(age_ms)} ago: {advice}; or wait for a minute"
        )
