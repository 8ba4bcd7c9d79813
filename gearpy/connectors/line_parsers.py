"""Parsers of lines, for ``parse=`` of `files`."""

import re
from collections.abc import Callable
from typing import Any, Final

from gearpy.errors import ConfigError

_SHOWN_CHARS: Final = 80
#: A key, and perhaps a value: in quotes, within which a backslash escapes, or without blanks.
_PAIR: Final = re.compile(r'([^\s="]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?(?=\s|$)\s*')


def regex(pattern: str, **types: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    r"""Return a parser that makes a dict of the named groups of a regular expression.

    The whole line must match; a line that does not is a bad one. A group that takes no part is
    None.

    Args:
        pattern: with groups such as ``(?P<status>\d+)``.
        types: functions of the texts of groups, by name, such as ``status=int``.

    Raises:
        ConfigError: the pattern is none or has no named group, or a type is of no group.

    Example:
        >>> import gearpy as gp
        >>> parse = gp.regex(r"(?P<ip>\S+) (?P<path>\S+) (?P<status>\d+)", status=int)
        >>> parse("10.0.0.1 /index.html 200")
        {'ip': '10.0.0.1', 'path': '/index.html', 'status': 200}
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConfigError(f"regex: {pattern!r} is no regular expression: {error}") from error
    if not compiled.groupindex:
        raise ConfigError(f"regex: {pattern!r} has no named group, such as (?P<status>\\d+)")
    if unknown := sorted(types.keys() - compiled.groupindex.keys()):
        groups = ", ".join(compiled.groupindex)
        raise ConfigError(f"regex: there is no group {unknown[0]!r}: there are {groups}")

    def parse(line: str) -> dict[str, Any]:
        if (found := compiled.fullmatch(line)) is None:
            raise ValueError(f"the line does not match {pattern[:_SHOWN_CHARS]!r}")
        return _typed(found.groupdict(), types)

    return parse


def logfmt(**types: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    r"""Return a parser of lines of ``key=value``, divided by blanks, that makes a dict.

    Values may stand in double quotes, within which a backslash escapes the next character. A key
    without a value is True. A line of anything else is a bad one.

    Args:
        types: functions of the texts of values, by key, such as ``ms=float``.

    Example:
        >>> import gearpy as gp
        >>> gp.logfmt(ms=float)('level=warn ms=12.5 msg="took \\"long\\"" retry')
        {'level': 'warn', 'ms': 12.5, 'msg': 'took "long"', 'retry': True}
    """

    def parse(line: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        at, line = 0, line.strip()
        while at < len(line):
            if (pair := _PAIR.match(line, at)) is None:
                raise ValueError(f"no key=value at character {at + 1}: {line[at : at + 20]!r}")
            key, quoted, plain = pair.groups()
            if quoted is not None:
                plain = re.sub(r"\\(.)", r"\1", quoted)
            found[key] = True if plain is None else plain
            at = pair.end()
        return _typed(found, types)

    return parse


def _typed(found: dict[str, Any], types: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    for name, function in types.items():
        if isinstance(text := found.get(name), str):
            found[name] = function(text)
    return found
