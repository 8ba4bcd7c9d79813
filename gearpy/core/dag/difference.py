"""Differences between the graphs that two processes built from one program."""

import re
from collections.abc import Sequence
from typing import Final

_SHOWN_MAX: Final = 3
_CHARS_MAX: Final = 300
_CONTEXT_CHARS: Final = 40
#: The class of a task that gearpy makes of steps; it tells a user nothing.
_INTERNAL: Final = re.compile(r" \(gearpy\.[\w.<>]*\)")


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
    by_subject: dict[str, list[str | None]] = {}
    for at, given in enumerate((expected, got)):
        for line in given:
            words = line.split(" ", 3)
            subject = " ".join(words[:3]) if words[1:2] == ["->"] else words[0]
            by_subject.setdefault(subject, [None, None])[at] = line

    def by_number(subject: str) -> tuple[bool, list[int], str]:
        words = subject.split(" -> ")
        numbers = [int(word) for word in words if word.isascii() and word.isdigit()]
        return len(words) > 1 or not numbers, numbers, subject  # Processors come first.

    found: list[str] = []
    for subject in sorted(by_subject, key=by_number):
        our, their = by_subject[subject]
        if our == their:
            continue
        if our and their and _INTERNAL.sub("", our) != _INTERNAL.sub("", their):
            our, their = _INTERNAL.sub("", our), _INTERNAL.sub("", their)
        if their is None:
            found.append(f"{theirs} has no {_shown(our or '')}")
        elif our is None:
            found.append(f"{theirs} has {_shown(their)}, which {ours} has not")
        else:
            pairs = enumerate(zip(our, their, strict=False))
            begin = next((at for at, (a, b) in pairs if a != b), min(len(our), len(their)))
            found.append(f"{theirs} has {_shown(their, begin)}, {ours} {_shown(our, begin)}")
    if more := len(found) - _SHOWN_MAX:
        found[_SHOWN_MAX:] = [f"and {more} more"] if more > 0 else []
    return "; ".join(found)


def _shown(line: str, place: int = 0) -> str:
    """Return a line; a long line is cut to its beginning and the surroundings of a place in it."""
    if len(line) <= _CHARS_MAX:
        return f"`{line}`"
    if place < _CHARS_MAX // 2:
        return f"`{line[:_CHARS_MAX]}...`"
    around = line[place - _CONTEXT_CHARS : place + _CHARS_MAX // 2]
    return f"`{line[:_CONTEXT_CHARS]}...{around}...`"
