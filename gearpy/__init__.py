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


#: Words for a direction in names of other libraries, and those of them that mean a sink.
_WRITES: Final = {"to", "write", "sink", "writer"}
_DIRECTIONS: Final = {"read", "from", "source", "reader", *_WRITES}
#: Names of a program's first object in other libraries.
_APPLICATIONS: Final = {"App", "Application", "Dataflow", "Flow", "Pipeline"}
_ENDS_OF_SINKS: Final = ("_sink", "_folder", "_file", "_table")
#: Tables in memory, which `rows` reads whoever made them; `to_table` gives one.
_FRAMES: Final = {"arrow", "pandas", "polars", "duckdb"}

_HOME_OF: Final = _homes()
__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - written once, in the table


def __getattr__(name: str) -> Any:
    public = _EARLIER.get(name, name)
    if public not in _HOME_OF:
        # With an object of its own the error gets no second advice from Python.
        nearest = "" if name.startswith("_") else _nearest(name)
        advice = f": did you mean {nearest}?" if nearest else ""
        text = f"module 'gearpy' has no attribute {name!r}{advice}"
        raise AttributeError(text, name=name, obj=None)
    module, own = _HOME_OF[public]
    home = import_module(module)
    # A module of the table is an attribute of its package only when it was imported.
    value = getattr(home, own) if hasattr(home, own) else import_module(f"{module}.{own}")
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    """Find what somebody may have meant who comes from pandas, Spark or an aggregate's name."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    if name in import_module("gearpy.core.window.aggregates").__all__:
        return f"agg.{name}"
    if name in _APPLICATIONS:
        return "StreamApp"
    words = name.split("_")
    kinds = [word for word in words if word not in _DIRECTIONS]
    if len(kinds) == 1 and len(words) > 1:  # read_csv, from_kafka, parquet_sink
        is_written, kind = bool(_WRITES & {*words}), "jsonl" if kinds == ["json"] else kinds[0]
        if kind in _FRAMES:
            return "to_table" if is_written else "rows"
        for found in (f"{kind}{end}" for end in (_ENDS_OF_SINKS if is_written else ("",))):
            if found in _HOME_OF:
                return found
    return next(iter(get_close_matches(name, __all__, n=1)), "")


def __dir__() -> list[str]:
    return list(__all__)
