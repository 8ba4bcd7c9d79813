"""The services that a command starts, if what they need is installed."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from gearpy.cluster.client.client import ClusterClient, user_at_hand
from gearpy.config.schema import Config
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from gearpy.services.server import Services

_NEEDED: Final = ("fastapi", "python_multipart", "uvicorn")


#: An option of all commands that serve the page.
NoToken: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-token", help="On this machine ask nobody for a token: all its users may do all."
    ),
]


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
    no_token: bool = False,
) -> "Services":
    """Start the services of a cluster; see `services.server.Services`.

    Without a token they say on standard error what that gives away.

    Raises:
        ConfigError: a package is missing, or they cannot listen there.
    """
    if missing := missing_for_services():
        raise ConfigError(missing)
    from gearpy.services.server import Services

    served = Services(
        client,
        config,
        host=host,
        port=port,
        names=names,
        of_one_run=of_one_run,
        needs_token=not no_token,
    )
    if no_token:
        me = user_at_hand() or "the user of this process"
        print(f"--no-token: every user of this machine can run code as you ({me})", file=sys.stderr)
    return served


def addresses(served: "Services | None") -> dict[str, str | None]:
    """Return where services are, and the token that they made, as JSON has it."""
    started = served.started if served else None
    return {"url": served.url if served else "", "token": started.token if started else None}
