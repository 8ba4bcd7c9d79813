"""The text of SQL and its tokens; every mistake is shown where it stands in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from gearpy.errors import ConfigError

Kind: TypeAlias = Literal["word", "quoted", "text", "number", "symbol", "end"]

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+"|`[^`]+`)
      | (?P<symbol>->>|->|<>|<=|>=|==|!=|\|\||::|//|=>|\*\*|[-+*/%^(),.<>=;\[\]])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word, literal or symbol.

    Attributes:
        text: words in lower case, as SQL takes no notice of it; texts and quoted names without
            their quotes.
        at: its place in the text.
        raw: as it stands there.
    """

    kind: Kind
    text: str
    at: int
    raw: str


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text in SQL: its tokens, and errors that show a place in it.

    Attributes:
        text: all of it.
        name: of the file it stands in; empty for none.
    """

    text: str
    name: str = ""

    def tokens(self) -> list[Token]:
        """Return the tokens, with one of kind "end" behind them.

        Raises:
            ConfigError: there is a character that no token begins with, or a quote is not closed.
        """
        found: list[Token] = []
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                first = self.text[at]
                if first in "'\"`":
                    raise self.error(at, f"the quote {first} is not closed")
                if self.text.startswith("/*", at):
                    raise self.error(at, "the comment is not closed: end it with */")
                raise self.error(at, f"{first!r} is no part of SQL")
            kind, raw = match.lastgroup, match.group()
            text = raw
            match kind:
                case "word":
                    text = raw.lower()
                case "text" | "quoted":
                    text = raw[1:-1].replace(raw[0] * 2, raw[0])
            if kind != "space":
                found.append(Token(kind, text, at, raw))  # type: ignore[arg-type]
            at = match.end()
        return [*found, Token("end", "", len(self.text.rstrip()), "")]

    def error(self, at: int, mistake: str) -> ConfigError:
        """Return the error of a mistake, which shows its line with a mark below it.

        One that was found within what is read here shows its own line already.
        """
        if mistake.endswith(" ^"):
            return ConfigError(mistake)
        start = self.text.rfind("\n", 0, at) + 1
        line = self.text[start:].partition("\n")[0]
        row, column = self.text.count("\n", 0, at) + 1, at - start + 1
        where = f"{self.name}, line {row}" if self.name else f"line {row}"
        shown = line.replace("\t", " ")
        return ConfigError(
            f"{mistake}\n  at {where}, column {column}:\n  {shown}\n  {' ' * (column - 1)}^"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the advice about a name that is none of those known."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f": did you mean {by_lower[near[0]]}?" if near else ""
