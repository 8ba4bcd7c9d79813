r"""Regular expressions that mean the same to Arrow as to Python, which takes ten times as long.

Left to Python are those that may not: classes of letters such as ``\d``, which Python takes from
Unicode, ``$``, which it finds before a last new line, and what Arrow does not know.
"""

import re
from collections.abc import Iterator
from typing import Final

_ESCAPED: Final = r"\\[^\w\s]"
_CLASS: Final = rf"\[\^?(?:{_ESCAPED}|[^\\\[\]^])+\]"
_ATOM: Final = rf"(?P<atom>{_ESCAPED}|{_CLASS}|\((?!\?)|[)|^]|[^\\\[\](){{}}|$?*+^])"
_TIMES: Final = r"(?P<times>(?:[*+?]|\{\d{1,3}(?:,\d{1,3})?\})\??(?!\+))?"
_PART: Final = re.compile(_ATOM + _TIMES)


def arrow_pattern(pattern: str, group: int | None = None) -> str | None:
    """Return the pattern for Arrow; None if Python is to look for it.

    Args:
        group: which one is looked for, 0 for all that is found; it is called "found". None: none.
    """
    parts = list(_parts_of(pattern))
    if "".join(map("".join, parts)) != pattern:
        return None
    if group is None:
        return pattern
    # A group that did not take part is None to Python; of one taken several times the last counts.
    if any(atom == "|" or (atom == ")" and times) for atom, times in parts):
        return None
    groups = iter(range(1, len(parts) + 1))
    texts = [
        ("(?P<found>" if next(groups) == group else "(?:") if atom == "(" else atom + times
        for atom, times in parts
    ]
    return "".join(texts) if group else f"(?P<found>{''.join(texts)})"


def _parts_of(pattern: str) -> Iterator[tuple[str, str]]:
    at = 0
    while found := _PART.match(pattern, at):
        yield found["atom"], found["times"] or ""
        at = found.end()
