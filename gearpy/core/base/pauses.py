"""The pause before a thing that has failed is tried again."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

#: Nobody waits for the power of a million.
_DOUBLINGS_MAX: Final = 32


def pause_after(failures: int, first_ms: int, most_ms: int, rng: "Random") -> int:
    """Return the pause in ms: twice as long after each failure, half of it by chance.

    So many that have failed at one moment do not come back all at once.

    Example:
        >>> from random import Random
        >>> [pause_after(failures, 100, 1000, Random(1)) for failures in (1, 2, 10)]
        [58, 117, 568]
    """
    longest = min(first_ms * 2 ** min(failures - 1, _DOUBLINGS_MAX), most_ms)
    return rng.randint(longest // 2, longest)
