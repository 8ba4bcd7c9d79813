"""Answers that are kept, and who waits for one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.lookup_cache import LookupAnswer, LookupCache
from gearpy.errors import ConfigError


def a_cache(size: int = 2, ttl_ms: int | None = 100, **answers: Any) -> LookupCache[str]:
    cache: LookupCache[str] = LookupCache(size, ttl_ms)
    for key, value in answers.items():
        cache.ask(key, "")
        cache.answer(key, value, 0)
    return cache


def test_what_was_used_least_lately_makes_room() -> None:
    cache = a_cache(a=1, b=2)
    cache.find("a", 0)

    cache.ask("c", "")
    cache.answer("c", 3, 0)

    assert len(cache) == 2
    assert [cache.find(key, 0) for key in "abc"] == [LookupAnswer(1), None, LookupAnswer(3)]


def test_answer_gets_old() -> None:
    """Since it came; looking at it does not keep it young."""
    cache = a_cache(a=1)

    assert cache.find("a", 99) == LookupAnswer(1)
    assert cache.find("a", 100) is None
    assert len(cache) == 0


def test_answer_from_the_future_does_not_count() -> None:
    cache = a_cache(a=1)

    assert cache.find("a", -1) is None


def test_one_asks_and_the_others_wait() -> None:
    cache = a_cache()

    assert not cache.ask("a", "first")
    assert cache.ask("a", "second")
    assert cache.ask("a", "third")
    assert not cache.ask("b", "another")

    assert cache.answer("a", 1, 0) == ["second", "third"]
    assert not cache.ask("a", "later")


@pytest.mark.parametrize(("size", "ttl_ms"), [(-1, 1), (1, 0)])
def test_wrong_numbers_are_refused(size: int, ttl_ms: int) -> None:
    with pytest.raises(ConfigError, match="must be 0 or more; ttl is"):
        LookupCache(size, ttl_ms)


@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(["ask", "answer", "give_up"]), st.integers(0, 4))),
)
def test_answers_are_new_enough_and_few_enough_and_asked_once(
    size: int, steps: list[tuple[str, int]]
) -> None:
    cache: LookupCache[int] = LookupCache(size, 10)
    came: dict[int, int] = {}
    asking: dict[int, list[int]] = {}
    for now_ms, (kind, key) in enumerate(steps):
        match kind:
            case "ask":
                found = cache.find(key, now_ms)
                if found is not None:
                    assert now_ms - came[key] < 10
                    assert found.value == came[key]
                elif cache.ask(key, now_ms):
                    asking[key].append(now_ms)
                else:
                    assert key not in asking
                    asking[key] = []
            case "answer" if key in asking:
                assert cache.answer(key, now_ms, now_ms) == asking.pop(key)
                came[key] = now_ms
            case "give_up" if key in asking:
                assert cache.give_up(key) == asking.pop(key)
        assert len(cache) <= size
