"""What every transport promises, run over each of them."""

import threading
from collections.abc import Callable, Iterator

import pytest

from gearpy.ids import TaskId
from gearpy.messages.data import AckRequest, Batch, DataMessage, EncodedBatch
from gearpy.transport.api import LinkLost, Transport, TransportLimits
from gearpy.transport.links.memory import MemoryHub, MemoryTransport
from gearpy.transport.links.tcp import TcpTransport
from gearpy.wire.values.payload import decode_batch
from tests.eventually import eventually
from tests.transport.build import PATIENCE_S, SECRET, Inbox, Losses, data, request

TARGET = TaskId(1, 0)
LIMITS = TransportLimits(reconnect_base_ms=5, reconnect_max_ms=20, reconnect_retries=30)

Make = Callable[..., Transport]


@pytest.fixture(params=["memory", "tcp"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """A maker of transports of one kind; those it made are stopped at the end."""
    kind, hub = request.param, MemoryHub()
    made: list[Transport] = []

    def make_one(address: str = "", on_link_lost: LinkLost | None = None) -> Transport:
        host, _, rest = address.rpartition(":")
        if kind == "tcp":
            port = int(rest) if host else 0
            made.append(TcpTransport(SECRET, port=port, limits=LIMITS, on_link_lost=on_link_lost))
        else:
            name = rest or f"t{len(made)}"
            made.append(MemoryTransport(hub, name, on_link_lost=on_link_lost))
        return made[-1]

    yield make_one
    for transport in made:
        transport.stop()


def connected(make: Make, *targets: TaskId) -> tuple[Transport, Transport, dict[TaskId, Inbox]]:
    """Return a sender, a receiver, and the inboxes of the receiver's tasks."""
    sender, receiver = make(), make()
    inboxes = {target: Inbox() for target in targets}
    for target, inbox in inboxes.items():
        receiver.register(target, inbox)
    sender.start()
    address = receiver.start()
    sender.locate(dict.fromkeys(targets, address))
    return sender, receiver, inboxes


def test_messages_of_a_link_arrive_in_order(make: Make) -> None:
    """Records of one key from one upstream task keep their order: it begins here."""
    sender, _, inboxes = connected(make, TARGET)

    for start in range(0, 5000, 10):
        sender.send([request(seq, TARGET) for seq in range(start, start + 10)])

    assert inboxes[TARGET].take_seqs(5000) == list(range(5000))


def test_messages_of_several_senders_keep_the_order_of_each(make: Make) -> None:
    sender, _, inboxes = connected(make, TARGET)
    sources = [TaskId(0, n) for n in range(4)]

    def send_all(source: TaskId) -> None:
        for seq in range(500):
            sender.send([request(seq, TARGET, source)])

    threads = [threading.Thread(target=send_all, args=[source]) for source in sources]
    for thread in threads:
        thread.start()
    messages = inboxes[TARGET].take(2000)

    for thread in threads:
        thread.join(PATIENCE_S)
    for source in sources:
        seqs = [m.seq for m in messages if isinstance(m, AckRequest) and m.source == source]
        assert seqs == list(range(500))


def test_a_task_of_the_same_transport_gets_messages_by_reference(make: Make) -> None:
    """Neighbours share batches; nothing is copied or encoded."""
    transport, inbox = make(), Inbox()
    transport.register(TARGET, inbox)
    transport.start()
    message = data(1, TARGET, [object()])

    transport.send([message])

    assert inbox.take(1)[0] is message


def test_a_large_batch_arrives_whole(make: Make) -> None:
    sender, _, inboxes = connected(make, TARGET)
    values = [bytes([n % 256]) * 100 for n in range(80_000)]

    sender.send([data(1, TARGET, values)])

    (message,) = inboxes[TARGET].take(1)
    assert isinstance(message, DataMessage)
    batch = message.batch
    if isinstance(batch, EncodedBatch):
        batch = decode_batch(batch.body, batch.count)
    assert batch == Batch(values, list(range(80_000)))


def test_messages_to_a_task_nobody_has_are_told_by_the_sender_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Flow control finds the loss; the log tells where."""
    sender, _, _ = connected(make, TARGET)

    for _ in range(2):
        sender.send([request(1, TaskId(9, 9)), request(2, TaskId(9, 9))])

    assert [each.getMessage() for each in caplog.records] == [
        "messages for task 9.9 dropped: it does not run here"
    ]


def test_messages_to_a_task_that_moved_away_are_told_by_the_receiver(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    gone = TaskId(1, 1)
    sender, receiver, inboxes = connected(make, TARGET, gone)
    receiver.unregister(gone)

    sender.send([request(1, gone), request(2, TARGET)])

    assert inboxes[TARGET].take_seqs(1) == [2]
    eventually(lambda: "messages for task 1.1 dropped" in caplog.text, "the drop is told")
    assert inboxes[gone].empty


def test_stop_while_threads_send_does_not_hang(make: Make) -> None:
    sender, receiver, _ = connected(make, TARGET)
    stopped, running = threading.Event(), threading.Event()

    def send_on() -> None:
        seq = 0
        while not stopped.is_set():
            sender.send([request(seq, TARGET)])
            running.set()
            seq += 1

    threads = [threading.Thread(target=send_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert running.wait(PATIENCE_S)

    receiver.stop()
    sender.stop()

    stopped.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_stop_may_come_twice_or_before_start(make: Make) -> None:
    started, never_started = make(), make()
    started.start()

    for transport in (started, never_started):
        transport.stop()
        transport.stop()

    started.send([request(1, TARGET)])


def test_a_peer_that_comes_back_at_its_address_is_reached_again(make: Make) -> None:
    losses, inbox = Losses(), Inbox()
    sender, first = make(on_link_lost=losses), make()
    before = Inbox()
    first.register(TARGET, before)
    sender.start()
    address = first.start()
    sender.locate({TARGET: address})
    sender.send([request(0, TARGET)])
    assert before.take_seqs(1) == [0]

    first.stop()
    sender.send([request(1, TARGET)])
    lost_address, _ = losses.take()
    second = make(address)
    second.register(TARGET, inbox)
    second.start()
    sender.send([request(seq, TARGET) for seq in range(10_000, 10_010)])

    seqs: list[int] = []
    while not seqs or seqs[-1] != 10_009:
        seqs += inbox.take_seqs(1)
    assert seqs in (list(range(10_000, 10_010)), [1, *range(10_000, 10_010)])
    assert lost_address == address


def test_a_peer_that_never_comes_is_given_up(make: Make) -> None:
    losses = Losses()
    sender, peer = make(on_link_lost=losses), make()
    sender.start()
    address = peer.start()
    peer.stop()
    sender.locate({TARGET: address})

    sender.send([request(1, TARGET), request(2, TARGET)])

    assert losses.take()[0] == address
