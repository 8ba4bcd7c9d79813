"""Options as Gearpump spells them, with one dash: each is answered by that of today."""

from collections.abc import Mapping, Sequence
from typing import Final

from gearpy.distribution import is_clone

#: What is written today, and an example of a whole command.
_TODAY: Final[Mapping[str, tuple[str, str]]] = {
    "-appid": ("the number alone", "kill 3"),
    "-command": ("a command", "spark start"),
    "-conf": ("--conf FILE", "info --conf gear.toml"),
    "-executors": ("--executors N", "app submit FILE.py --executors 2"),
    "-ip": ("--host HOST", "master --host 10.0.0.1 --port 3000"),
    "-jar": ("the program alone", "app submit FILE.py[:ATTR] -- ARGS"),
    "-master": ("--master HOST:PORT", "services --master 10.0.0.1:3000"),
    "-namePrefix": ("--name-prefix PREFIX", "app submit FILE.py --name-prefix test_"),
    "-port": ("--port N", "master --host 10.0.0.1 --port 3000"),
    "-sameprocess": ("--executors thread", "local --executors thread"),
    "-supervisor": ("nothing: there is no supervisor", "services"),
    "-verbose": ("--verbose", "app submit FILE.py --verbose"),
    "-workernum": ("--workers N", "local --workers 4"),
}
#: Behind its program all words are the program's.
_MAIN: Final = "main"


def today(words: Sequence[str]) -> str:
    """Return the text that names today's option for an earlier one; empty if there is none."""
    for place, word in enumerate(words):
        if word == "--" or (words[0] == _MAIN and place and not word.startswith("-")):
            break
        if (found := _TODAY.get(word.partition("=")[0])) is not None:
            written, example = found
            gear = "bin/gear" if is_clone() else "gear"
            return f"{word} is Gearpump's: write {written} here, as in {gear} {example}"
    return ""
