"""The mailbox and the reply, without actors."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.actor.mailbox import POISON_PILL, Mailbox, Question, Refusal, Reply, Stop


class Owner:
    """Counts its wake-ups; a new mailbox is on its first turn."""

    def __init__(self, user_max: int = 10) -> None:
        self.woken = 0
        self.mailbox = Mailbox(user_max, self._wake)

    def _wake(self) -> None:
        self.woken += 1


def a_resting_owner(user_max: int = 10) -> Owner:
    """Return an owner that has ended its first turn."""
    owner = Owner(user_max)
    owner.mailbox.rest(takes_user=True)
    return owner


def test_owner_is_woken_once_for_many_messages() -> None:
    """An actor is in the run queue at most once."""
    owner = a_resting_owner()

    for number in range(5):
        owner.mailbox.put(number)
    owner.mailbox.put_system(Stop())

    assert owner.woken == 1


def test_owner_on_its_turn_is_not_woken() -> None:
    """It will look again before it rests."""
    owner = Owner()

    owner.mailbox.put(1)

    assert owner.woken == 0
    assert owner.mailbox.rest(takes_user=True)


def test_user_messages_do_not_keep_an_owner_awake_that_takes_none() -> None:
    """During back-off messages wait, and no thread spins."""
    owner = Owner()
    owner.mailbox.put(1)

    assert not owner.mailbox.rest(takes_user=False)


def test_full_mailbox_refuses_but_takes_system_messages_and_own() -> None:
    """A flood of data must not keep a stop, nor the actor itself, out."""
    owner = a_resting_owner(user_max=1)
    owner.mailbox.put(1)

    assert owner.mailbox.put(2) is Refusal.FULL
    assert owner.mailbox.put_unbounded(3)
    assert owner.mailbox.put_system(Stop())
    assert list(owner.mailbox.user) == [1, 3]


def test_closed_mailbox_returns_what_waited_and_refuses_the_rest() -> None:
    """Nothing disappears."""
    owner = Owner()
    owner.mailbox.put(1)

    assert owner.mailbox.close() == [1]
    assert owner.mailbox.put(2) is Refusal.CLOSED
    assert not owner.mailbox.put_unbounded(3)
    assert not owner.mailbox.put_back(4)
    assert owner.mailbox.put_system(Stop())


def test_last_message_closes_but_leaves_those_before_it() -> None:
    """A graceful stop."""
    owner = Owner()
    owner.mailbox.put(1)
    owner.mailbox.put_unbounded(POISON_PILL, close=True)

    assert owner.mailbox.put(2) is Refusal.CLOSED
    assert list(owner.mailbox.user) == [1, POISON_PILL]
    assert owner.mailbox.put_back(0)


def test_ended_mailbox_wakes_its_owner_and_gives_it_a_last_turn() -> None:
    """A killed actor's thread must notice, also when it was just about to rest."""
    idle, busy = a_resting_owner(), Owner()

    idle.mailbox.end()
    busy.mailbox.end()

    assert idle.woken == 1
    assert busy.mailbox.rest(takes_user=True)
    assert not busy.mailbox.put_system(Stop())


def test_batch_ends_before_what_is_more_than_a_message() -> None:
    """Questions are answered one by one, in order with the batches."""
    owner = Owner()
    question = Question("?", Reply())
    for item in (1, 2, question, 3):
        owner.mailbox.put(item)

    assert owner.mailbox.take_batch(10) == ([1, 2], question)
    assert owner.mailbox.take_batch(10) == ([3], None)


def test_first_outcome_of_a_reply_counts() -> None:
    """An answer that races with a kill must not confuse the asker."""
    reply = Reply()

    reply.set(1)
    reply.fail(ValueError())

    assert reply.wait(0)
    assert reply.result() == 1


def test_reply_without_outcome_times_out() -> None:
    """Nobody waits for ever."""
    assert not Reply().wait(0.001)
    assert not Reply().is_done


def test_reply_raises_its_error() -> None:
    """The asker gets what went wrong."""
    reply = Reply()
    reply.fail(ValueError("no"))

    assert reply.wait(float("inf"))
    with pytest.raises(ValueError, match="no"):
        reply.result()


def test_many_threads_lose_nothing_when_the_mailbox_closes() -> None:
    """Each message is taken, returned by `close`, or refused; exactly one of them."""
    mailbox = Mailbox(10**6, lambda: None)
    accepted: list[int] = []
    taken: list[int] = []
    is_closed = threading.Event()

    def produce(start: int) -> None:
        for number in range(start, start + 20_000):
            if mailbox.put(number) is not None:
                return
            accepted.append(number)

    def consume() -> None:
        while not is_closed.is_set():
            taken.extend(mailbox.take_batch(7)[0])

    threads = [threading.Thread(target=produce, args=(n * 20_000,)) for n in range(3)]
    threads.append(threading.Thread(target=consume))
    for thread in threads:
        thread.start()
    threads[0].join()
    returned = mailbox.close()
    is_closed.set()
    for thread in threads:
        thread.join()

    assert sorted(taken + returned) == sorted(accepted)


@given(st.lists(st.sampled_from(["put", "signal", "turn", "waiting turn"]), max_size=60))
def test_at_most_one_turn_and_none_missing(steps: list[str]) -> None:
    """The invariant of `Mailbox`."""
    owner = Owner(user_max=5)
    turns, rests, takes_user = 1, 0, True

    for step in steps:
        if step == "put":
            owner.mailbox.put(1)
        elif step == "signal":
            owner.mailbox.put_system(Stop())
        elif turns + owner.woken > rests:
            takes_user = step == "turn"
            owner.mailbox.system.clear()
            if takes_user and owner.mailbox.user:
                owner.mailbox.user.popleft()
            rests += not owner.mailbox.rest(takes_user=takes_user)
        on_turn = turns + owner.woken - rests
        assert on_turn in (0, 1)
        if on_turn == 0:
            assert not owner.mailbox.system
            assert not (takes_user and owner.mailbox.user)
