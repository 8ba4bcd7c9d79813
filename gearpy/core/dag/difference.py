"""Differences between the graphs that two processes built from one program."""

from collections.abc import Sequence
from typing import Final

_SHOWN_MAX: Final = 3
_CHARS_MAX: Final = 300
_CONTEXT_CHARS: Final = 40


def graph_difference(
    expected: Sequence[str],
    got: Sequence[str],
    *,
    ours: str = "the app master",
    theirs: str = "the executor",
) -> str:
    """Tell the first differences between two `Dag.description`; empty if there are none.

    ``expected`` belongs to ``ours``. Lines that begin with the same numbers are about the same
    processor or edge.
    """
    one, other = {_subject(line): line for line in expected}, {_subject(line): line for line in got}
    found = [
        _told(one.get(subject), other.get(subject), ours, theirs)
        for subject in sorted(one.keys() | other.keys(), key=_place)
        if one.get(subject) != other.get(subject)
    ]
    if more := len(found) - _SHOWN_MAX:
        found[_SHOWN_MAX:] = [f"and {more} more"] if more > 0 else []
    return "; ".join(found)


def _subject(line: str) -> str:
    words = line.split(" ", 3)
    return " ".join(words[:3]) if words[1:2] == ["->"] else words[0]


def _place(subject: str) -> tuple[bool, list[int], str]:
    words = subject.split(" -> ")
    numbers = [int(word) for word in words if word.isascii() and word.isdigit()]
    return len(words) > 1 or not numbers, numbers, subject


def _told(expected: str | None, got: str | None, ours: str, theirs: str) -> str:
    if got is None:
        return f"{theirs} has no {_shown(expected or '')}"
    if expected is None:
        return f"{theirs} has {_shown(got)}, which {ours} has not"
    pairs = enumerate(zip(expected, got, strict=False))
    begin = next((place for place, (a, b) in pairs if a != b), min(len(expected), len(got)))
    return f"{theirs} has {_shown(got, begin)}, {ours} {_shown(expected, begin)}"


def _shown(line: str, place: int = 0) -> str:
    """Return a line; a long line is cut to its beginning and the surroundings of a place in it."""
    if len(line) <= _CHARS_MAX:
        return f"`{line}`"
    if place < _CHARS_MAX // 2:
        return f"`{line[:_CHARS_MAX]}...`"
    around = line[place - _CONTEXT_CHARS : place + _CHARS_MAX // 2]
    return f"`{line[:_CONTEXT_CHARS]}...{around}...`"
