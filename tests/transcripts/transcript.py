"""A transcript: commands of a story, and under each what the core says to it.

A block is one or more commands, a line of dashes and the answer; a blank line ends it. Lines that
begin with ``#`` tell the story. etcd's raft is tested by such files, with its `datadriven` package.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

_DASHES: Final = "----"


@dataclass(frozen=True, slots=True)
class Words:
    """The words behind a command: plain ones, and settings ``key=value``."""

    plain: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    def number(self, key: str, default: int) -> int:
        return int(self.settings.get(key, default))


#: By the name of a command: what does it; yields lines.
Player: TypeAlias = dict[str, Callable[[Words], Iterable[str]]]


def play(text: str, player: Player) -> str:
    blocks = (block for block in text.split("\n\n") if block.strip())
    return "\n\n".join("\n".join(_played(block.strip("\n"), player)) for block in blocks) + "\n"


def _played(block: str, player: Player) -> Iterator[str]:
    commands = block.split(f"\n{_DASHES}", maxsplit=1)[0].splitlines()
    yield from commands
    told = [line for line in commands if not line.startswith("#")]
    if told:
        yield _DASHES
        answer = [said for line in told for said in _answer(line, player)]
        yield from answer or ["nothing"]


def _answer(line: str, player: Player) -> Iterable[str]:
    name, *rest = line.split()
    if name not in player:
        raise ValueError(f"{line!r}: no such command; there are {', '.join(sorted(player))}")
    pairs = [word.partition("=") for word in rest]
    plain = [key for key, sign, _ in pairs if not sign]
    return player[name](Words(plain, {key: value for key, sign, value in pairs if sign}))
