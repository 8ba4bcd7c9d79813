"""The services that a command starts, if what they need is installed."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gearpy.cluster.client.client import ClusterClient
from gearpy.config.schema import Config
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from gearpy.services.server import Services

_NEEDED: Final = ("fastapi", "python_multipart", "uvicorn")


def missing_for_services() -> str:
    """Return the advice for a machine that cannot start services yet; empty if it can."""
    missing = [each for each in _NEEDED if find_spec(each) is None]
    if not missing:
        return ""
    return f"the services and the page need {', '.join(missing)}: {pip_install('ui')}"


def open_services(
    client: ClusterClient,
    config: Config,
    *,
    host: str | None = None,
    port: int | None = None,
    names: Sequence[str] = (),
    of_one_run: bool = False,
) -> "Services":
    """Start the services of a cluster; see `services.server.Services`.

    Raises:
        ConfigError: a package is missing, or they cannot listen there.
    """
    if missing := missing_for_services():
        raise ConfigError(missing)
    from gearpy.services.server import Services

    return Services(client, config, host=host, port=port, names=names, of_one_run=of_one_run)
