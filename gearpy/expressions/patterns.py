r"""Regular expressions that mean the same to Arrow as to Python, which takes ten times as long.

Some do for texts of ASCII without a last new line alone: those with classes of letters such as
``\d``, which Python takes from Unicode, or with ``$``. Left to Python is what Arrow does not know.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.expressions.arrow_types import Kernel, are_ascii, where

_YEAR: Final = "(?:[1-9][0-9]{3}|0[0-9]{2}[1-9]|0[0-9][1-9][0-9]|0[1-9][0-9]{2})"
#: What Arrow reads as Python does, and most texts are.
WHOLE: Final = "^-?[0-9]{1,18}$"
NUMBER: Final = r"^-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?$"
DAY: Final = f"^{_YEAR}-[0-9]{{2}}-[0-9]{{2}}$"
MOMENT: Final = f"{DAY[:-1]}(?:[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\\.[0-9]{{1,6}})?Z?)?$"
#: Parts of formats of times: what they match, and their places in a time in the ISO form.
_PARTS_OF_TIME: Final = {
    "%Y": f"({_YEAR})",
    **dict.fromkeys(("%m", "%d", "%H", "%M", "%S"), "([0-9]{2})"),
    "%f": "([0-9]{1,6})",
}
_ISO: Final = "%Y-%m-%d %H:%M:%S.%f"

#: Letters of classes in texts of ASCII.
_LETTERS: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\x09-\x0d\x1c-\x20"}
_ESCAPED: Final = r"\\[^\w\s]"
_CLASS: Final = rf"\[\^?(?:{_ESCAPED}|\\[dws]|[^\\\[\]^])+\]"
_ATOM: Final = (
    rf"(?P<atom>{_ESCAPED}|\\[dwsDWS]|{_CLASS}|\(\?:|\((?!\?)|[)|^$]|[^\\\[\](){{}}|$?*+^])"
)
_TIMES: Final = r"(?P<times>(?:[*+?]|\{\d{1,3}(?:,\d{1,3})?\})\??(?!\+))?"
_PART: Final = re.compile(_ATOM + _TIMES)
_ANY_CASE: Final = "(?i)"


class ArrowPattern(NamedTuple):
    """A pattern as Arrow takes it."""

    text: str
    for_plain: bool  #: It means the same in texts of ASCII without a last new line alone.


def arrow_pattern(pattern: str, group: int | None = None) -> ArrowPattern | None:
    """Return the pattern for Arrow; None if Python is to look for it.

    Args:
        group: which one is looked for, 0 for all that is found; it is called "found". None: none.
    """
    flag = _ANY_CASE if pattern.startswith(_ANY_CASE) and pattern.isascii() else ""
    parts = list(_parts_of(pattern.removeprefix(flag)))
    if flag + "".join(map("".join, parts)) != pattern:
        return None
    texts = [_of_ascii(atom) + times for atom, times in parts]
    for_plain = (
        bool(flag)
        or any(text[:1] == "$" for text in texts)
        or "".join(texts) != "".join(map("".join, parts))
    )
    if group is None:
        return ArrowPattern(flag + "".join(texts), for_plain)
    # A group that did not take part is None to Python; of one taken several times the last counts.
    if any(atom == "|" or (atom == ")" and times) for atom, times in parts):
        return None
    groups = iter(range(1, len(parts) + 1))
    texts = [
        ("(?P<found>" if next(groups) == group else "(?:") if atom == "(" else text
        for (atom, _), text in zip(parts, texts, strict=True)
    ]
    found = "".join(texts) if group else f"(?P<found>{''.join(texts)})"
    return ArrowPattern(flag + found, for_plain)


def _parts_of(pattern: str) -> Iterator[tuple[str, str]]:
    at = 0
    while found := _PART.match(pattern, at):
        yield found["atom"], found["times"] or ""
        at = found.end()


def _of_ascii(atom: str) -> str:
    """Return a part of a pattern with the letters of its classes."""
    if atom[0] == "[":
        return re.sub(r"\\(.)", lambda found: _LETTERS.get(found[1], found[0]), atom)
    letters = _LETTERS.get(atom[1:].lower()) if atom[0] == "\\" else None
    if letters is None:
        return atom
    return f"[{'^' if atom[1].isupper() else ''}{letters}]"


def are_plain(texts: pa.Array) -> bool:
    """Tell whether texts are of ASCII, without a last new line."""
    return are_ascii(texts) and not pc.any(pc.ends_with(texts, pattern="\n")).as_py()


def where_alike(pattern: str, kernel: Kernel, by_cell: Kernel) -> Kernel:
    """Return a kernel for texts that all match a pattern, and another one for all others."""
    return where(
        lambda texts: bool(pc.all(pc.match_substring_regex(texts, pattern=pattern)).as_py()),
        kernel,
        by_cell,
    )


def moments(text: pa.Array) -> pa.Array:
    """Return the times, of UTC, of texts that are like `MOMENT`."""
    bare = pc.cast(pc.utf8_rtrim(text, characters="Z"), pa.timestamp("us"))
    return bare.view(pa.int64()).view(pa.timestamp("us", "UTC"))


def iso_of(format: str) -> tuple[str, str] | None:  # noqa: A002 - as `strptime` has it
    """Return a pattern of texts of a format, and their ISO form by the groups in it.

    None for a format with other parts than numbers of so many digits, or without a day.
    """
    parts = re.findall("%.|[^%]", format, re.DOTALL)
    used = [part for part in parts if part in _PARTS_OF_TIME]
    is_known = all(part in used or (len(part) == 1 and part not in r"%[]^\\") for part in parts)
    if not is_known or len(set(used)) < len(used) or not {"%Y", "%m", "%d"}.issubset(used):
        return None
    pattern = "".join(_PARTS_OF_TIME.get(part) or f"[{part}]" for part in parts)
    iso = _ISO
    for part in _PARTS_OF_TIME:
        iso = iso.replace(part, f"\\{used.index(part) + 1}" if part in used else "00")
    return f"^{pattern}$", iso
