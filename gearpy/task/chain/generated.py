"""Functions made of generated source: loops that do the work of a step for each record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_INDENT: Final = "    "
_NAME: Final = "made"


def compiled(lines: Sequence[str], names: Mapping[str, Any], *, what: str) -> Callable[..., Any]:
    """Return the function that lines of source define as ``made``.

    The lines are made of fixed words, numbers, and names of fields in quotes as `repr` makes them.

    Args:
        lines: of the source.
        names: the objects that it uses.
        what: a name, shown in tracebacks.
    """
    scope = dict(names)
    code = compile("\n".join(lines) + "\n", f"<gearpy {what}>", "exec")
    exec(code, scope)  # noqa: S102 - see above
    made: Callable[..., Any] = scope[_NAME]
    return made


def indented(lines: Sequence[str], depth: int) -> list[str]:
    """Return lines that are so deep inside of blocks."""
    return [_INDENT * depth + line for line in lines]
