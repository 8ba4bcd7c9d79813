"""``gear config ...``: shows the configuration, or checks it."""

import sys
from typing import Annotated

import typer

from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import ConfFiles, Given, configure, takes
from gearpy.cli.terminal.output import print_json
from gearpy.config.hidden import shown_setting
from gearpy.config.load import as_overrides
from gearpy.config.render import as_toml
from gearpy.config.schema import config_of, values_of

commands = group("Show the configuration, or check it.")


@commands.command()
@takes("set_", "as_json", "verbose")
def show(
    given: Given,
    files: ConfFiles = None,
    *,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="With passwords, and whole addresses of webhooks.")
    ] = False,
) -> None:
    """Print every key with its value, after defaults, files, environment and --set."""
    config = configure(files, given.set_)
    values = {key: shown_setting(key, value) for key, value in values_of(config).items()}
    shown = config if secrets else config_of(values)
    if given.as_json:
        print_json(values_of(shown))
    else:
        print(as_toml(shown), end="")
    if shown != config:
        print("secrets are hidden: --secrets shows them", file=sys.stderr)


@commands.command()
@takes("set_", "as_json", "verbose")
def check(given: Given, files: ConfFiles = None) -> None:
    """Find all mistakes in files, environment and --set; print what differs from the defaults."""
    found = as_overrides(configure(files, given.set_))
    changes = {key: shown_setting(key, value) for key, value in found.items()}
    given.answer(
        {"changes": changes},
        f"the configuration is right; keys that differ from their defaults: {len(changes)}",
        *(f"  {key} = {value}" for key, value in changes.items()),
    )
