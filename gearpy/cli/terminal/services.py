"""The services that a command starts, if what they need is installed."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from gearpy.cluster.client.client import ClusterClient, user_at_hand
from gearpy.config.schema import Config
from gearpy.distribution import require

if TYPE_CHECKING:
    from gearpy.services.server import Services

_NEEDED: Final = ("fastapi", "python_multipart", "uvicorn", "wsproto")


#: An option of all commands that serve the page.
NoToken: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-token", help="On this machine ask nobody for a token: all its users may do all."
    ),
]


def check_services() -> None:
    require("the page with its REST API", *_NEEDED)


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
    """
    check_services()
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
    started = served.started if served else None
    return {"url": served.url if served else "", "token": started.token if started else None}
