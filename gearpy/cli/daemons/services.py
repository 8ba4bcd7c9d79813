"""``gear services``: the REST API and the page of a cluster; ``gear token ...``: who may use it."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.options import Given, argument, asking, configured, option
from gearpy.cli.terminal.output import print_json, table
from gearpy.cli.terminal.services import NoToken, addresses, open_services
from gearpy.clocks import wall_ms
from gearpy.cluster.host.interruptible import wait_interruptibly
from gearpy.distribution import program
from gearpy.errors import ConfigError
from gearpy.transport.security.start_token import start_tokens, start_tokens_of
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
        option(
            "--host",
            metavar="HOST",
            help="Where to listen; default: services.host. Beyond this machine it needs tokens.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        option(
            "--port",
            min=0,
            max=65_535,
            metavar="N",
            help="Default: services.port; 0 lets the system choose.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        option(
            "--name",
            metavar="NAME",
            help="A name of this host in the address line of browsers; others are refused.",
        ),
    ] = None,
    no_token: NoToken = False,
) -> None:
    """Serve the REST API and the page of a cluster, until Ctrl-C or SIGTERM."""
    config = given.config()
    log_to_stderr(verbose=given.verbose, warnings=True)
    with (
        suppress(KeyboardInterrupt),  # It was asked to stop.
        given.client() as client,
        open_services(
            client, config, host=host, port=port, names=name or (), no_token=no_token
        ) as served,
    ):
        given.answer(
            addresses(served),
            f"services ready at {served.url}; stop with Ctrl-C",
            f"the page is at {served.page}",
        )
        wait_interruptibly(threading.Event())


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
    given.answer({"name": name, "scope": scope, "token": secret}, secret)


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
        print(
            "there are no tokens: services on this machine make one at each start, see "
            "'gear token show'"
        )
    else:
        rows = [[each.name, each.scope.text, text.moment(each.created_ms)] for each in found]
        table("tokens", ("name", "scope", "made"), rows)


@tokens.command(epilog=HELP)
@configured
def show(
    given: Given,
    address: Annotated[
        str | None, argument(metavar="URL", help="Of services; then their token alone is printed.")
    ] = None,
) -> None:
    """Print the addresses of services that you run on this machine, with the tokens they made."""
    found = start_tokens(start_tokens_of(given.config().services.token_file))
    if address is not None:
        place = urlsplit(address if "://" in address else f"http://{address}").netloc
        found = tuple(each for each in found if urlsplit(each.url).netloc == place)
    if given.as_json:
        print_json({"services": [{"url": each.url, "token": each.token} for each in found]})
    elif not found:
        where = f"at {address} " if address else ""
        raise ConfigError(
            f"no services {where}that you run on this machine have made a token: start them with "
            f"{program('local')} or {program('services')}, or make one with 'gear token add NAME'"
        )
    else:
        print(*(each.token if address else each.page for each in found), sep="\n")


@tokens.command(epilog=HELP)
@configured
def remove(given: Given, name: _Name) -> None:
    """Remove a token; who shows it is refused from now on."""
    TokenFile(given.config().services.token_file).remove(name)
    given.answer({"removed": name}, f"the token {name} is removed")
