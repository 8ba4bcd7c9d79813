"""The mailbox and the reply, without actors."""

import threading
from contextlib import suppress
from typing import Any

import pykka
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from gearpy.actor.mailbox import Mailbox, Reply
from gearpy.errors import MailboxFull
from gearpy.ids import ActorPath
from tests.actor.build import DeadLetters

PATH = ActorPath("", "a")


class Owner:
    def __init__(self, user_max: int = 10, *, is_on_turn: bool = True) -> None:
        self.woken = 0
        self.mailbox = Mailbox(PATH, user_max, self._wake)
        if is_on_turn:
            self.mailbox.put_system(nothing)
            self.mailbox.system.clear()
            self.woken = 0

    def _wake(self) -> None:
        self.woken += 1

    def put(self, *messages: Any) -> None:
        for message in messages:
            self.mailbox.put(Envelope(message))

    @property
    def waiting(self) -> list[Any]:
        return [envelope.message for envelope in self.mailbox.user]


def nothing() -> None:
    """Do nothing, as a system message."""


def test_owner_is_woken_once_for_many_messages() -> None:
    owner = Owner(is_on_turn=False)

    owner.put(*range(5))
    owner.mailbox.put_system(nothing)

    assert owner.woken == 1


def test_user_messages_do_not_keep_an_owner_awake_that_takes_none() -> None:
    owner = Owner()
    owner.put(1)

    assert not owner.mailbox.rest(takes_user=False)


def test_full_mailbox_refuses_but_takes_system_messages_own_and_a_stop() -> None:
    owner = Owner(user_max=1, is_on_turn=False)
    owner.put(1)

    with pytest.raises(MailboxFull, match="1 messages wait"):
        owner.put(2)
    owner.mailbox.put_unbounded(Envelope(3))
    owner.mailbox.put(Envelope(_ActorStop()))

    assert owner.mailbox.put_system(nothing)
    assert owner.waiting[:2] == [1, 3]
    assert len(owner.waiting) == 3


def test_closed_mailbox_discards_what_waited_and_what_comes(dead_letters: DeadLetters) -> None:
    """Nothing disappears: it is in the log, and askers hear of it."""
    owner, asked, late, stop = Owner(), Reply(), Reply(), Reply()
    owner.put(1)
    owner.mailbox.put(Envelope("?", asked))

    owner.mailbox.close()
    owner.put(2)
    owner.mailbox.put_unbounded(Envelope(3))
    owner.mailbox.put_back(Envelope(4))
    owner.mailbox.put(Envelope("?", late))
    owner.mailbox.put(Envelope(_ActorStop(), stop))

    assert owner.waiting == []
    assert dead_letters.of == {PATH: 4}
    for reply in (asked, late):
        with pytest.raises(pykka.ActorDeadError, match="actor /a stopped"):
            reply.get(timeout=0)
    assert stop.get(timeout=0) is None
    assert owner.mailbox.put_system(nothing)


def test_last_message_closes_but_leaves_those_before_it(dead_letters: DeadLetters) -> None:
    owner = Owner()
    owner.put(1)
    owner.mailbox.put_last()
    owner.put(2)
    owner.mailbox.put_back(Envelope(0))

    assert owner.waiting[:2] == [0, 1]
    assert len(owner.waiting) == 3
    assert dead_letters.of == {PATH: 1}


def test_ended_mailbox_wakes_its_owner_and_gives_it_a_last_turn() -> None:
    idle, busy = Owner(is_on_turn=False), Owner()

    idle.mailbox.end()
    busy.mailbox.end()

    assert idle.woken == 1
    assert busy.mailbox.rest(takes_user=True)
    assert not busy.mailbox.put_system(nothing)


def test_batch_ends_before_what_is_more_than_a_message() -> None:
    owner = Owner()
    question = Envelope("?", Reply())
    owner.put(1, 2)
    owner.mailbox.put(question)
    owner.put(3)

    assert owner.mailbox.take_batch(10) == ([1, 2], question)
    assert owner.mailbox.take_batch(10) == ([3], None)


def test_first_outcome_of_a_reply_counts() -> None:
    reply = Reply()

    reply.set(1)
    reply.set(2)
    reply.set_exception((ValueError, ValueError(), None))

    assert reply.wait(0)
    assert reply.get() == 1


def test_many_threads_lose_nothing_when_the_mailbox_closes(dead_letters: DeadLetters) -> None:
    """Each message is taken, or counted as a dead letter; exactly one of them."""
    owner = Owner(10**6)
    taken: list[int] = []
    is_closed = threading.Event()

    def produce(start: int) -> None:
        for number in range(start, start + 20_000):
            owner.put(number)

    def consume() -> None:
        while not is_closed.is_set():
            taken.extend(owner.mailbox.take_batch(7)[0])

    threads = [threading.Thread(target=produce, args=(n * 20_000,)) for n in range(3)]
    threads.append(threading.Thread(target=consume))
    for thread in threads:
        thread.start()
    threads[0].join()
    owner.mailbox.close()
    is_closed.set()
    for thread in threads:
        thread.join()

    assert len(set(taken)) == len(taken)
    assert len(taken) + dead_letters.of[PATH] == 60_000


@given(st.lists(st.sampled_from(["put", "signal", "turn", "waiting turn"]), max_size=60))
def test_at_most_one_turn_and_none_missing(steps: list[str]) -> None:
    owner = Owner(user_max=5)
    turns, rests, takes_user = 1, 0, True

    for step in steps:
        if step == "put":
            with suppress(MailboxFull):
                owner.put(1)
        elif step == "signal":
            owner.mailbox.put_system(nothing)
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
