"""Every transcript says what the cores say now; `--rewrite` makes it so."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.transcripts.application import application_player
from tests.transcripts.clock import clock_player
from tests.transcripts.consensus import consensus_player
from tests.transcripts.link import link_player
from tests.transcripts.transcript import Player, play

HERE: Final = Path(__file__).parent
#: Who plays a file, by the first word of its name; all others are about applications.
PLAYERS: Final[dict[str, Callable[[], Player]]] = {
    "clock": clock_player,
    "consensus": consensus_player,
    "link": link_player,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.txt")))
def test_decisions_are_as_written(name: str, request: pytest.FixtureRequest) -> None:
    file = HERE / f"{name}.txt"
    written = file.read_text(encoding="utf-8")
    player = PLAYERS.get(name.split("-", maxsplit=1)[0], application_player)()

    played = play(written, player)

    if request.config.getoption("--rewrite"):
        file.write_text(played, encoding="utf-8")
    else:
        assert played == written


def test_an_answer_is_replaced_and_the_story_is_kept() -> None:
    text = "# A story.\n\n# It begins.\nsay a b=c\n----\nold\n\nsay\n----\n"
    player: Player = {"say": lambda words: [*words.plain, *words.settings]}

    assert play(text, player) == (
        "# A story.\n\n# It begins.\nsay a b=c\n----\na\nb\n\nsay\n----\nnothing\n"
    )


def test_an_unknown_command_is_named() -> None:
    with pytest.raises(ValueError, match="'sya x': no such command; there are say"):
        play("sya x\n", {"say": lambda _: []})
