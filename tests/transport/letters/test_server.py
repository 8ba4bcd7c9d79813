"""Who is heard and who is refused, see `gearpy.transport.letters.server`."""

from contextlib import ExitStack

import pytest

from gearpy.ids import AppId
from gearpy.messages.peer import Fenced, Greeting, LettersTaken, PeerMessage, Ping, Pong, Welcome
from gearpy.transport.security.credentials import Credentials
from gearpy.wire.connection.keys import KeyRing, application_key
from tests.transport.build import SECRET
from tests.transport.letters_build import QUICK, Make, Raw, a_letter


def test_what_a_zombie_says_before_it_knows_is_refused(make: Make, stack: ExitStack) -> None:
    one, zombie = make(), "127.0.0.1:1#1"
    raw = Raw(stack, one.address)
    raw.say(Greeting(sender=zombie, receiver=one.node, session=1), a_letter(1), Ping(number=5))
    assert raw.hear(3) == [Welcome(node=one.node, taken=0), Pong(number=5), LettersTaken(number=1)]

    one.nodes.fence(zombie)
    told = raw.hear()
    raw.say(Ping(number=6), a_letter(2), a_letter(3))

    reason = "fenced: this process gave it up"
    assert told == raw.hear() == [Fenced(node=one.node, reason=reason, given_up=True)]
    assert raw.hear() == []
    assert one.take() == [b"1"]
    assert one.letters.empty()


@pytest.mark.parametrize(
    "nonsense",
    [a_letter(1), Ping(number=1), Welcome(node="x:1#1", taken=0)],
    ids=["letter", "ping", "welcome"],
)
def test_a_node_that_does_not_greet_first_is_cut_off(
    make: Make, stack: ExitStack, nonsense: PeerMessage
) -> None:
    one = make()
    raw = Raw(stack, one.address)

    raw.say(nonsense)

    assert raw.hear() == []
    assert one.letters.empty()


def test_a_letter_behind_a_gap_ends_the_connection(make: Make, stack: ExitStack) -> None:
    one, greeting = make(), Greeting(sender="a:1#1", receiver="b:1", session=1)
    raw = Raw(stack, one.address)
    raw.say(greeting, a_letter(1), a_letter(3))
    assert [type(message) for message in raw.hear()] == [Welcome]
    assert raw.hear() == []

    again = Raw(stack, one.address)
    again.say(greeting, a_letter(1), a_letter(2))

    assert again.hear(2) == [Welcome(node=one.node, taken=1), LettersTaken(number=2)]
    assert one.take(2) == [b"1", b"2"]


def test_of_two_connections_of_one_conversation_the_newer_counts(
    make: Make, stack: ExitStack
) -> None:
    one, greeting = make(), Greeting(sender="a:1#1", receiver="b:1", session=1)
    older, newer = Raw(stack, one.address), Raw(stack, one.address)
    older.say(greeting)
    older.hear()

    newer.say(greeting)

    assert newer.hear() == [Welcome(node=one.node, taken=0)]
    assert older.hear() == []


def test_a_fenced_process_that_comes_by_another_name_for_us_is_refused(make: Make) -> None:
    one, zombie = make(), make()
    one.nodes.fence(zombie.node)

    for _ in range(2):
        assert zombie.tell(one.address)
        zombie.watch(one.address)
        assert "fenced" in zombie.lost()

    assert one.letters.empty()


def of_application(app_id: int) -> Credentials:
    key = application_key(SECRET, AppId(app_id))
    return Credentials(keys=KeyRing.of_application(AppId(app_id), key))


def test_an_application_and_the_cluster_write_to_each_other(make: Make) -> None:
    """An executor knows only its application's key; the cluster's processes can prove that."""
    worker, executor = make(), make(shown=of_application(1))

    executor.tell(worker.address, b"up")
    worker.tell(executor.node, b"down")

    assert worker.take() == [b"up"]
    assert executor.take() == [b"down"]
    assert str(worker.nodes.principal_of(executor.node)) == "application 1"


def test_nobody_takes_the_name_of_a_node_of_another_principal(make: Make) -> None:
    master, worker, thief = make(), make(), make(QUICK, shown=of_application(1))
    worker.tell(master.node)
    master.take()

    thief.nodes._node = worker.node  # noqa: SLF001 - it lies
    thief.tell(master.node, b"stolen")
    thief.watch(master.node)

    assert "silent for" in thief.lost()
    assert master.letters.empty()
