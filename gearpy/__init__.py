"""gearpy: an actor-based streaming runtime.

    import gearpy as gp

    app = gp.StreamApp("wordcount")
    (
        app.read(gp.files("books/*.txt"))
        .flat_map(str.split)
        .key_by(lambda word: word)
        .window(gp.tumbling("10s"))
        .count()
        .write(gp.console())
    )
    gp.run(app)

Everything users need is a name of this module, of `gearpy.testing` or of `gearpy.errors`. Names
load what they stand for when they are first used, so that importing a core loads no actor.
"""

import logging
import pkgutil
from importlib import import_module
from typing import Any, Final

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())

#: Earlier public names, by the names that are in their place: programs that have them still run.
_EARLIER: Final = {"memory": "to_list", "table": "rows"}


def _homes() -> dict[str, tuple[str, str]]:
    """Return the module of each public name, and its name there, as ``__init__.pyi`` lists them."""
    table = pkgutil.get_data(__name__, "__init__.pyi")
    assert table is not None, "the table of public names is a part of the package"
    imported: dict[str, tuple[str, str]] = {}
    public: dict[str, tuple[str, str]] = {}
    for line in table.decode().splitlines():
        match line.split():
            case ["from", module, "import", name]:
                imported[name] = (module, name)
            case ["from", module, "import", name, "as", alias]:
                public[alias] = (module, name)
            case [alias, "=", name]:
                public[alias] = imported[name]
    return public


_HOME_OF: Final = _homes()
__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - written once, in the table


def __getattr__(name: str) -> Any:
    public = _EARLIER.get(name, name)
    if public not in _HOME_OF:
        raise AttributeError(f"module 'gearpy' has no attribute {name!r}{_advice(name)}")
    module, own = _HOME_OF[public]
    home = import_module(module)
    # A module of the table is an attribute of its package only when it was imported.
    value = getattr(home, own) if hasattr(home, own) else import_module(f"{module}.{own}")
    globals()[name] = value
    return value


def _advice(name: str) -> str:
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    nearest = get_close_matches(name, __all__, n=1)
    return f": did you mean {nearest[0]}?" if nearest else ""


def __dir__() -> list[str]:
    return list(__all__)
