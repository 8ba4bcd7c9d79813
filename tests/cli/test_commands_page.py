"""The page about commands shows what they print, and names every key of their JSON."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.build import Gear
from tests.cli.test_commands import SHAPES

PAGE: Final = Path(__file__).parents[2] / "docs" / "commands.md"
_TEXT: Final = PAGE.read_text(encoding="utf-8")
_CONSOLE: Final = re.compile(
    r"^```console\n\$ bin/gear ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
#: Those that need no cluster are run with the other pages, or have tests of their own.
_ELSEWHERE: Final = (
    "run ",
    "plan ",
    "chaos ",
    "config ",
    "certs ",
    "app submit ",
    "report ",
    "coordinator-log ",
    "checkpoint ",
    "state ",
    "debug ",
    "shell ",
    "main ",
)
EXAMPLES: Final = [
    (command, shown)
    for command, shown in _CONSOLE.findall(_TEXT)
    if not command.startswith(_ELSEWHERE)
]
#: Of a store that the tests of these commands make.
EXAMPLES_OF_STATE: Final = [
    (command, shown) for command, shown in _CONSOLE.findall(_TEXT) if command.startswith("state ")
]


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_a_command_prints_what_the_page_shows(command: str, shown: str, gear: Gear) -> None:
    """Who compares the two finds them equal."""
    assert plain(gear(*shlex.split(command))) == plain(shown)


def test_every_command_that_asks_a_cluster_has_an_example() -> None:
    shown = {command.partition(" shop")[0].partition(" 3")[0] for command, _ in EXAMPLES}
    known = {command.partition(" 2")[0] for command in SHAPES}

    assert known - {"kill"} == shown


def test_every_key_of_json_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", _TEXT))

    assert set(keys_of(SHAPES.values())) <= named


def keys_of(shape: Any) -> Iterator[str]:
    if isinstance(shape, dict):
        yield from (key for key in shape if " " not in key)
        yield from keys_of(shape.values())
    elif not isinstance(shape, type | str):
        for each in shape:
            yield from keys_of(each)


def plain(text: str) -> str:
    """Leave out what differs from run to run, and the blanks that fill a table."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "0000-00-00T00:00:00Z", text)
    text = re.sub(r"\d+ [md] \d\d [sh]", "0 m 00 s", text)
    return "\n".join(line.rstrip() for line in text.splitlines())
