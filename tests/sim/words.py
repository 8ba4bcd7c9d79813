"""Words with event times, of which tests make streams."""

from random import Random
from typing import Final

import gearpy as gp

WORDS: Final = ["to", "be", "or", "not", "that", "is"]


def some_words(rng: Random, count: int) -> list[gp.Message]:
    """Return words with event times that grow, but for up to 20 ms."""
    return [
        gp.Message(rng.choice(WORDS), 5 * number + rng.randrange(20)) for number in range(count)
    ]
