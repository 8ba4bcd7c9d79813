"""``gear services``: the REST API and the page of a cluster; ``gear token ...``: who may use it."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Literal, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.options import Given, asking, configured
from gearpy.cli.terminal.output import print_json, table
from gearpy.cli.terminal.services import open_services
from gearpy.clocks import wall_ms
from gearpy.transport.security.tokens import TOKEN_SCOPES, StoredToken, TokenFile
from gearpy.views import text

tokens = group("Tokens for the services: who may read, submit, or do all.")

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")]


@asking
def services(
    given: Given,
    *,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Where to listen; default: services.host. Beyond this machine it needs tokens.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            metavar="N",
            help="Default: services.port; 0 lets the system choose.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name of this host in the address line of browsers; others are refused.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve the REST API and the page of a cluster, until Ctrl-C or SIGTERM."""
    config = given.config()
    log_to_stderr(verbose=given.verbose, warnings=True)
    with (
        suppress(KeyboardInterrupt),  # It was asked to stop.
        given.client() as client,
        open_services(client, config, host=host, port=port, names=name or ()) as served,
    ):
        if given.as_json:
            print_json({"url": served.url})
        else:
            print(f"services ready at {served.url}; stop with Ctrl-C", flush=True)
        threading.Event().wait()


@tokens.command(epilog=HELP)
@configured
def add(
    given: Given,
    name: _Name,
    *,
    scope: Annotated[
        Literal["read", "submit", "admin"],
        typer.Option(
            "--scope",
            help="read: look; submit: also submit, and stop one's own applications; admin: all.",
        ),
    ] = "read",
) -> None:
    """Make a token and print it; it is stored as a hash, so that nobody can see it again."""
    file = TokenFile(given.config().services.token_file)
    secret = file.add(name, TOKEN_SCOPES[scope], now_ms=wall_ms())
    if given.as_json:
        print_json({"name": name, "scope": scope, "token": secret})
    else:
        print(secret)


@tokens.command("list", epilog=HELP)
@configured
def list_(given: Given) -> None:
    """List the names and scopes of tokens."""
    found: Sequence[StoredToken] = TokenFile(given.config().services.token_file).tokens()
    if given.as_json:
        print_json(
            {
                "tokens": [
                    {"name": each.name, "scope": each.scope.text, "created_ms": each.created_ms}
                    for each in found
                ]
            }
        )
    elif not found:
        print("there are no tokens: on this machine, nobody needs one")
    else:
        rows = [[each.name, each.scope.text, text.moment(each.created_ms)] for each in found]
        table("tokens", ("name", "scope", "made"), rows)


@tokens.command(epilog=HELP)
@configured
def remove(given: Given, name: _Name) -> None:
    """Remove a token; who shows it is refused from now on."""
    TokenFile(given.config().services.token_file).remove(name)
    if given.as_json:
        print_json({"removed": name})
    else:
        print(f"the token {name} is removed")
