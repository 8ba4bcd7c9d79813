"""Groups of commands, and commands whose module is imported when they are called."""

import gc
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import typer
from typer.core import TyperCommand
from typer.main import get_command

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.extras import setting_up
from gearpy.cli.terminal.guard import guarded

_SETTINGS: Final[Mapping[str, Any]] = {
    "add_completion": False,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def group(about: str, **settings: Any) -> typer.Typer:
    """Make a group of commands; without arguments it shows its help."""
    return typer.Typer(help=about, **{**_SETTINGS, **settings})


def add_lazy(commands: typer.Typer, name: str, place: str, **settings: Any) -> None:
    """Add a command or group that is in another module.

    Args:
        commands: the group that it is added to.
        name: what a user calls it.
        place: its module below `gearpy.cli`, a colon, and its name there.
        settings: its short help, its theme, or that it is hidden.
    """
    made: Any = partial(_Lazy, place)
    commands.command(name, cls=made, **settings)(_nothing)


class _Lazy(TyperCommand):
    """Stands for a command or a group until it is called."""

    def __init__(self, place: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._place = place

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Import the command, and let it take the arguments."""
        module, _, name = self._place.partition(":")
        with guarded(), setting_up():
            found = getattr(_loaded(f"gearpy.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            command, found = found, typer.Typer(**{**_SETTINGS, "no_args_is_help": False})
            settings = {**_SETTINGS["context_settings"], **self.context_settings}
            found.command(self.name, epilog=HELP, context_settings=settings)(command)
        return get_command(found).make_context(*args, **extra)


def _loaded(module: str) -> ModuleType:
    """Import a module. What is loaded stays: to look for garbage in it takes a fifth of a start."""
    if (known := sys.modules.get(module)) is not None:
        return known
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def _nothing() -> None:
    pass
