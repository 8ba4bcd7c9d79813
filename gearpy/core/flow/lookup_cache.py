"""A cache of lookups, with the waiters for lookups in progress."""

from collections import OrderedDict
from typing import Any, Generic, NamedTuple, TypeVar

from gearpy.errors import ConfigError

T = TypeVar("T")


class LookupAnswer(NamedTuple):
    """The known answer for a key; it may be None."""

    value: Any


class LookupCache(Generic[T]):
    """The answers used last, each for a while; a key is looked up by one at a time.

    Invariant: at most ``size`` answers are kept, none for longer than ``ttl_ms`` after it came;
    between `ask` that returned False and `answer` or `give_up`, no second `ask` for the key does.
    """

    def __init__(self, size: int, ttl_ms: int | None) -> None:
        if size < 0 or (ttl_ms is not None and ttl_ms < 1):
            raise ConfigError(
                f"lookup: cache is {size}, must be 0 or more; ttl is {ttl_ms} ms, must be 1 or more"
            )
        self._size = size
        self._ttl_ms = ttl_ms
        self._answers: OrderedDict[Any, tuple[Any, int]] = OrderedDict()  # Used last is last.
        self._asked: dict[Any, list[T]] = {}  # The waiters of each key.

    def find(self, key: Any, now_ms: int) -> LookupAnswer | None:
        known = self._answers.get(key)
        if known is None:
            return None
        value, came_ms = known
        # A wall clock may be put back: then nobody knows how old an answer is.
        if self._ttl_ms is not None and not 0 <= now_ms - came_ms < self._ttl_ms:
            del self._answers[key]
            return None
        self._answers.move_to_end(key)
        return LookupAnswer(value)

    def ask(self, key: Any, waiter: T) -> bool:
        waiting = self._asked.get(key)
        if waiting is None:
            self._asked[key] = []
            return False
        waiting.append(waiter)
        return True

    def answer(self, key: Any, value: Any, now_ms: int) -> list[T]:
        if self._size:
            self._answers[key] = (value, now_ms)
            self._answers.move_to_end(key)
            if len(self._answers) > self._size:
                self._answers.popitem(last=False)
        return self._asked.pop(key)

    def give_up(self, key: Any) -> list[T]:
        return self._asked.pop(key)

    def __len__(self) -> int:
        return len(self._answers)
