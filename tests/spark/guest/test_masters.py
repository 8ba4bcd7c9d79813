"""Three masters in tasks of Spark: whoever of them is killed, what was acknowledged stays."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.boot.remote import connect
from gearpy.config.load import load
from gearpy.messages.client import GetMaster
from gearpy.spark.guest.cluster import CONF_FILE
from tests.eventually import eventually, take_time
from tests.spark.guest.guest_build import jvm_of, newest_epoch_by
from tests.spark.guest.guest_drives import driver, is_exact, lines, standalone
from tests.system.cluster_build import descendants

pytestmark = pytest.mark.long

_WAIT_S: Final = 900
#: With an epoch each 200 ms it takes 20 s at least.
_EPOCHS: Final = 100


def test_executors_with_masters_are_killed(tmp_path: Path) -> None:
    """The leader's, then those of two masters, then the leader's of the next cluster there.

    Connections are encrypted.
    """
    _check_kills(tmp_path, "local-cluster[3,2,1024]", {"transport.tls": "on"})


def test_the_same_on_a_standalone_cluster(tmp_path: Path) -> None:
    with standalone(tmp_path, workers=3) as url:
        _check_kills(tmp_path, url, {})


def _check_kills(folder: Path, master: str, config: dict[str, str]) -> None:
    with driver(folder, scene="masters", master=master, config=config) as process:
        told = list(lines(process))

    blows = [each for each in told if "masters_killed" in each]
    assert [each["is_kept"] for each in blows] == [True] * 3
    assert [each["then"] for each in blows] == ["succeeded"] * 3
    assert told[-2] == {"status": "terminated"}
    assert is_exact(told[-1])


def test_a_driver_that_is_frozen_holds_up_nobody(tmp_path: Path) -> None:
    """Another master leads when the leader's executor is killed meanwhile, and epochs go on.

    The driver replaces what was lost when it can.
    """
    conf = tmp_path / "cluster" / CONF_FILE
    with (
        standalone(tmp_path, workers=3) as url,
        driver(tmp_path, scene="frozen", master=url) as process,
    ):
        told = lines(process)
        newest = _word(told, "epoch")
        with _frozen([process.pid, *descendants(process.pid)]):
            with connect(config=load([conf])) as client:
                os.kill(jvm_of(client.ask(GetMaster()).pid), signal.SIGKILL)
            take_time(2 * _WAIT_S)
            eventually(
                lambda: newest_epoch_by(conf) > newest + _EPOCHS,
                "epochs",
                within_s=_WAIT_S,
                every_s=0.2,
            )
            take_time(2 * _WAIT_S)
        (tmp_path / "thawed").touch()
        *_, last = rest = list(told)

    assert {"status": "terminated"} in rest
    assert is_exact(last)


def _word(told: Iterator[dict[str, Any]], name: str) -> Any:
    return next(each[name] for each in told if name in each)


@contextmanager
def _frozen(pids: Sequence[int]) -> Iterator[None]:
    _signal(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # It has ended by itself.
            os.kill(pid, number)
