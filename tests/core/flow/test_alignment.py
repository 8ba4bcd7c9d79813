"""Links that are ahead wait, and nothing else does."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.flow.alignment import EpochEnd, LinkAlignment
from gearpy.errors import MessageLost
from gearpy.ids import TaskId

A, B, C = (TaskId(0, index) for index in range(3))


class Sent(NamedTuple):
    """A message: its link, its place on the link, and its epoch if it is data."""

    link: TaskId
    number: int
    epoch: int | None


def data(link: TaskId, number: int, epoch: int) -> Sent:
    return Sent(link, number, epoch)


def take(alignment: LinkAlignment[Sent], *messages: Sent) -> list[Any]:
    passed: list[Any] = []
    for sent in messages:
        passes = alignment.passes(sent.link, sent.epoch)
        found = list(alignment.take(sent.link, sent, sent.epoch))
        assert not passes or found == [sent]
        passed += found
    return passed


def test_messages_of_the_epoch_at_hand_pass() -> None:
    alignment: LinkAlignment[Sent] = LinkAlignment([A, B], 1)
    assert alignment.passes(A, 1)
    assert alignment.passes(A, None)

    take(alignment, data(A, 1, 2))

    assert not alignment.passes(A, None)
    assert not alignment.passes(B, 2)
    assert alignment.passes(B, 1)


def test_link_may_be_several_epochs_ahead() -> None:
    alignment: LinkAlignment[Sent] = LinkAlignment([A, B], 1)
    take(alignment, data(A, 1, 2), data(A, 2, 3), data(A, 3, 3))

    assert take(alignment, data(B, 1, 2)) == [EpochEnd(1), data(A, 1, 2), data(B, 1, 2)]
    assert take(alignment, data(B, 2, 3)) == [
        EpochEnd(2), data(A, 2, 3), data(A, 3, 3), data(B, 2, 3),
    ]  # fmt: skip


def test_what_comes_from_elsewhere_never_waits() -> None:
    alignment: LinkAlignment[Sent] = LinkAlignment([A, B], 1)
    take(alignment, data(A, 1, 2))

    assert take(alignment, Sent(C, 1, None)) == [Sent(C, 1, None)]
    assert take(LinkAlignment([], 1), Sent(C, 1, None)) == [Sent(C, 1, None)]


@pytest.mark.parametrize("is_held", [True, False])
def test_epoch_of_a_link_never_falls(*, is_held: bool) -> None:
    """Such a record would count twice after a restart."""
    alignment: LinkAlignment[Sent] = LinkAlignment([A, B], 2)
    if is_held:
        take(alignment, data(A, 1, 3))

    with pytest.raises(MessageLost, match=r"from task 0\.0: epoch 1 came after epoch"):
        take(alignment, data(A, 2, 1))


LINKS = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=12), min_size=1, max_size=4
)


@given(LINKS, st.data())
def test_no_message_crosses_the_end_of_its_epoch(
    steps: list[list[int | None]], choice: st.DataObject
) -> None:
    """Invariant: order of links, ends in order, all before and none after; nothing is lost.

    A step is by how much the epoch of a link grows, or a message that is no data.
    """
    links = [TaskId(0, index) for index in range(len(steps))]
    waiting: list[list[Sent]] = []
    for link, epochs in zip(links, steps, strict=True):
        epoch, messages = 1, []
        for number, step in enumerate(epochs):
            epoch += step or 0
            messages.append(Sent(link, number, None if step is None else epoch))
        messages.append(Sent(link, len(epochs), 50))  # All links end all epochs at last.
        waiting.append(messages)
    alignment: LinkAlignment[Sent] = LinkAlignment(links, 1)
    passed: list[Any] = []
    newest = dict.fromkeys(links, 1)

    while any(waiting):
        sent = choice.draw(st.sampled_from([queue for queue in waiting if queue])).pop(0)
        newest[sent.link] = max(newest[sent.link], sent.epoch or 0)
        passed += alignment.take(sent.link, sent, sent.epoch)
        assert alignment.epoch == min(newest.values()), "an end is not delayed"

    epoch = 1
    for item in passed:
        if isinstance(item, EpochEnd):
            assert item.epoch >= epoch
            epoch = item.epoch + 1
        elif item.epoch is not None:
            assert item.epoch == epoch, "it passed in its own epoch"
    all_passed = [item for item in passed if isinstance(item, Sent)]
    assert epoch == 50
    assert not alignment.is_holding
    for index, link in enumerate(links):
        numbers = [sent.number for sent in all_passed if sent.link == link]
        assert numbers == list(range(len(steps[index]) + 1))


def test_link_that_is_ahead_waits_when_it_is_enough() -> None:
    alignment: LinkAlignment[Sent] = LinkAlignment([A, B], 1, is_holding_back=False)
    assert take(alignment, data(A, 1, 2)) == [data(A, 1, 2)]

    alignment.hold_back()
    assert take(alignment, Sent(A, 2, None), data(A, 3, 2), Sent(A, 4, None)) == [Sent(A, 2, None)]
    assert take(alignment, data(B, 1, 1)) == [data(B, 1, 1)]

    ended = [EpochEnd(1), data(A, 3, 2), Sent(A, 4, None), data(B, 2, 2)]
    assert take(alignment, data(B, 2, 2)) == ended
    assert not alignment.is_holding
    assert take(alignment, data(A, 5, 3)) == [data(A, 5, 3)]


@given(
    st.lists(st.lists(st.sampled_from([0, 0, 1, 2, None]), max_size=8), min_size=1, max_size=3),
    st.data(),
)
def test_nothing_of_an_epoch_follows_its_end_wherever_it_is_enough(
    steps: list[list[int | None]], choice: st.DataObject
) -> None:
    """Property: links keep their order, nothing is left, and no end is early or late."""
    links = [TaskId(0, index) for index in range(len(steps))]
    waiting = []
    for link, increments in zip(links, steps, strict=True):
        epoch, messages = 1, []
        for number, step in enumerate(increments):
            epoch += step or 0
            messages.append(Sent(link, number, None if step is None else epoch))
        waiting.append([*messages, Sent(link, len(increments), 50)])
    alignment: LinkAlignment[Sent] = LinkAlignment(links, 1, is_holding_back=False)
    passed: list[Any] = []

    while any(waiting):
        if choice.draw(st.booleans()):
            alignment.hold_back()
        sent = choice.draw(st.sampled_from([queue for queue in waiting if queue])).pop(0)
        passed += alignment.take(sent.link, sent, sent.epoch)

    check_ends(passed, last=49)
    assert (alignment.epoch, alignment.is_holding) == (50, False)
    for link in links:
        numbers = [item.number for item in passed if isinstance(item, Sent) and item.link == link]
        assert numbers == list(range(len(numbers)))
    assert sum(isinstance(item, Sent) for item in passed) == sum(map(len, steps)) + len(steps)


def check_ends(passed: list[Any], *, last: int) -> None:
    ended = 0
    for item in passed:
        assert item.epoch is None or item.epoch > ended
        if isinstance(item, EpochEnd):
            ended = item.epoch
    assert ended == last
