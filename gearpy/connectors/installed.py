"""Connectors of other packages, which offer them as entry points."""

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, Final

from gearpy.errors import ConfigError

#: Packages offer functions that return a source or a sink here.
GROUP: Final = "gearpy.connectors"


def connector(name: str) -> Callable[..., Any]:
    """Return a function of an installed package that makes a source or a sink.

    A package offers it in its ``pyproject.toml``::

        [project.entry-points."gearpy.connectors"]
        redis = "gearpy_redis:redis_stream"

    and a program has it by name: ``app.read(gp.connector("redis")("orders"))``.

    Raises:
        ConfigError: no package here offers the name, or it cannot be imported.
    """
    offered = entry_points(group=GROUP)
    if name not in offered.names:
        known = ", ".join(sorted(offered.names)) or "none"
        close = get_close_matches(name, offered.names, n=1)
        raise ConfigError(
            f"no installed package offers the connector {name!r}"
            + (f": did you mean {close[0]!r}?" if close else "")
            + f" (there are: {known}); install the package that has it as entry point of {GROUP}, "
            "also where the application runs"
        )
    try:
        made: Callable[..., Any] = offered[name].load()
    except Exception as error:
        raise ConfigError(
            f"connector {name!r} ({offered[name].value}) cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    return made
