"""Processes that write to each other, over real sockets; see `gearpy.transport.letters.peers`."""

import logging
import threading
from contextlib import ExitStack

import pytest

from gearpy.errors import ConfigError
from gearpy.ids import address_of, node_text
from gearpy.transport.api import split_address
from gearpy.transport.links.tcp import TcpTransport
from tests.transport.build import PATIENCE_S, SECRET
from tests.transport.letters_build import QUICK, Make


def test_two_nodes_write_to_each_other_and_to_themselves(make: Make) -> None:
    one, other = make(), make()

    for count in range(50):
        for sender, receiver in ((one, other), (other, one), (one, one)):
            assert sender.tell(receiver.node, b"%d" % count)

    expected = [b"%d" % count for count in range(50)]
    assert other.take(50) == expected
    assert sorted(one.take(100)) == sorted(expected * 2)


def test_letters_of_many_threads_all_arrive_and_each_thread_keeps_its_order(make: Make) -> None:
    one, other = make(), make()

    def send_all(name: int) -> None:
        for count in range(300):
            one.tell(other.node, b"%d %d" % (name, count))

    threads = [threading.Thread(target=send_all, args=[name]) for name in range(4)]
    for thread in threads:
        thread.start()
    bodies = [body.split() for body in other.take(1200)]

    for thread in threads:
        thread.join(PATIENCE_S)
    for name in range(4):
        counts = [int(count) for sender, count in bodies if int(sender) == name]
        assert counts == list(range(300))


def test_large_letters_arrive_whole(make: Make) -> None:
    one, other = make(), make()
    bodies = [bytes([count]) * 900_000 for count in range(20)]

    assert all(one.tell(other.node, body) for body in bodies)

    assert other.take(20) == bodies


def test_a_letter_over_the_frame_limit_is_refused_where_it_is_sent(make: Make) -> None:
    one, other = make(), make()

    with pytest.raises(ConfigError, match=r"over the limit of 1048576: send less at a time"):
        one.tell(other.node, bytes(1 << 20))
    assert one.tell(other.node)
    assert other.take() == [b"hello"]


def test_a_process_that_ends_is_lost_at_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """An executor that crashed is replaced at once; one that stops by itself is no fault."""
    caplog.set_level(logging.INFO, "gearpy.transport.letters.peers")
    one, other = make(), make()
    one.watch(other.node)
    one.tell(other.node)
    other.take()

    other.transport.stop()

    reason = one.lost()
    assert "it is stopping" in reason or "nobody listens" in reason
    levels = [each.levelname for each in caplog.records if reason in each.getMessage()]
    assert levels == ["INFO" if "it is stopping" in reason else "WARNING"]
    assert not one.tell(other.node)


def test_every_watcher_is_told_once_unless_it_unwatched(make: Make) -> None:
    one, other = make(), make()
    for key in ("a", "b", "gone", "a"):
        one.watch(other.node, key)
    one.nodes.unwatch(other.node, "gone")

    other.transport.stop()

    reason = one.lost()
    assert one.lost() == reason
    one.watch(other.node, "late")
    assert one.lost() == reason
    assert one.losses.empty()


def test_a_watcher_that_raises_does_not_cost_the_others_their_news(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = make(), make()

    def fail(_: str) -> None:
        raise RuntimeError("no")

    one.nodes.watch(other.node, "bad", fail)
    one.watch(other.node)

    other.transport.stop()

    assert one.lost()
    assert "a watcher of a lost node failed" in caplog.text


def test_a_frozen_process_is_lost_after_the_timeout_and_refused_when_it_wakes(make: Make) -> None:
    one, other = make(QUICK), make()
    other.watch(one.node)
    one.watch(other.node)
    other.tell(one.node)
    one.take()

    thaw = other.freeze()
    assert "silent for" in one.lost()
    other.tell(one.node, b"from the grave")
    thaw.set()

    assert "refuses this process: fenced: silent" in other.lost()
    assert not other.tell(one.node)
    assert one.letters.empty()


def test_a_fenced_process_is_told_and_gives_up_who_fenced_it(make: Make) -> None:
    """Both sides know the same: whoever was replaced ends its part."""
    one, zombie = make(), make()
    zombie.tell(one.node)
    one.take()
    zombie.watch(one.node)

    one.nodes.fence(zombie.node)

    assert "refuses this process: fenced: this process gave it up" in zombie.lost()
    assert not zombie.tell(one.node)
    assert not one.tell(zombie.node)


def test_another_process_at_the_address_of_a_lost_one_gets_only_what_is_for_the_address(
    make: Make,
) -> None:
    """A worker finds its restarted master; nobody takes it for the old one."""
    worker, old = make(), make()
    worker.watch(old.address, "address")
    worker.watch(old.node, "node")
    worker.tell(old.address, b"register")
    assert old.take() == [b"register"]

    old.transport.stop()
    worker.lost(), worker.lost()
    new = make(port=split_address(old.address)[1])

    assert not worker.tell(old.node)
    worker.watch(old.address, "address")
    assert worker.tell(old.address, b"register again")
    assert new.take() == [b"register again"]
    assert worker.losses.empty()


def test_a_process_that_meets_another_incarnation_has_lost_the_first(make: Make) -> None:
    one, other = make(), make()

    one.watch(node_text(other.address, "0" * 16))

    assert "is not here any more" in one.lost()
    assert one.tell(other.node)
    assert other.take() == [b"hello"]


@pytest.mark.parametrize("node", ["", "nowhere", "host:port", "#1"])
def test_a_text_that_is_no_node_is_lost_from_the_start(make: Make, node: str) -> None:
    one = make()

    assert not one.tell(node)
    one.watch(node)
    assert "is no address" in one.lost()


def test_letters_on_their_way_arrive_although_the_sender_stops(make: Make) -> None:
    one, other = make(), make()
    for count in range(100):
        one.tell(other.node, b"%d" % count)

    one.transport.stop()

    assert other.take(100) == [b"%d" % count for count in range(100)]
    assert not one.tell(other.node)
    one.watch(other.node)
    assert one.lost() == "this process has stopped"


def test_stop_does_not_wait_for_those_who_are_gone(make: Make) -> None:
    one, gone, frozen = make(), make(), make()
    for other in (gone, frozen):
        one.tell(other.node)
        other.take()
    gone.transport.stop()
    thaw = frozen.freeze()
    one.tell(frozen.node)

    one.transport.stop()

    assert frozen.is_frozen
    thaw.set()


def test_the_address_of_a_node_may_be_another_than_what_is_listened_on(stack: ExitStack) -> None:
    transport = TcpTransport(SECRET)
    transport.start()
    stack.callback(transport.stop)

    nodes = transport.serve_peers(hostname="worker-1")

    assert address_of(nodes.node) == f"worker-1:{split_address(transport.address)[1]}"
