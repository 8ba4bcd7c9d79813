"""``gear config ...``: shows the configuration, or checks it."""

from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import ConfFiles, Given, takes
from gearpy.cli.terminal.output import print_json
from gearpy.cli.terminal.settings import configure
from gearpy.config.load import as_overrides
from gearpy.config.render import as_toml
from gearpy.config.schema import values_of

commands = group("Show the configuration, or check it.")


@commands.command()
@takes("set_", "as_json", "verbose")
def show(given: Given, files: ConfFiles = None) -> None:
    """Print every key with its value, after defaults, files, environment and --set."""
    config = configure(files, given.set_)
    if given.as_json:
        print_json(values_of(config))
    else:
        print(as_toml(config), end="")


@commands.command()
@takes("set_", "as_json", "verbose")
def check(given: Given, files: ConfFiles = None) -> None:
    """Find all mistakes in files, environment and --set; print what differs from the defaults."""
    changes = as_overrides(configure(files, given.set_))
    if given.as_json:
        print_json({"changes": changes})
        return
    print(f"the configuration is right; keys that differ from their defaults: {len(changes)}")
    for key, value in changes.items():
        print(f"  {key} = {value}")
