"""A signal that the system gives to another thread ends a wait of the main one."""

import signal
import threading

from gearpy.cluster.host.interruptible import wait_interruptibly
from tests.eventually import DEADLINE_S


def test_a_signal_that_another_thread_got_is_handled_while_the_main_one_waits() -> None:
    came, over = threading.Event(), threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: came.set())
    other = threading.Thread(target=over.wait, daemon=True)
    other.start()
    assert other.ident is not None
    sender = threading.Timer(0.1, signal.pthread_kill, (other.ident, signal.SIGUSR1))
    try:
        sender.start()
        assert wait_interruptibly(came, DEADLINE_S)
    finally:
        over.set()
        signal.signal(signal.SIGUSR1, before)


def test_a_wait_ends_when_its_time_is_up() -> None:
    assert not wait_interruptibly(threading.Event(), 0.0)
