"""Three masters in tasks of Spark: whoever of them is killed, what was acknowledged stays."""

from pathlib import Path

import pytest

from tests.spark.guest.guest_drives import driver, is_exact, lines

pytestmark = pytest.mark.long


def test_executors_with_masters_are_killed(tmp_path: Path) -> None:
    """The leader's, then those of two masters, then the leader's of the next cluster there.

    Connections are encrypted.
    """
    master, encrypted = "local-cluster[3,2,1024]", {"transport.tls": "on"}
    with driver(tmp_path, scene="masters", master=master, config=encrypted) as process:
        told = list(lines(process))

    blows = [each for each in told if "masters_killed" in each]
    assert [each["is_kept"] for each in blows] == [True] * 3
    assert [each["then"] for each in blows] == ["succeeded"] * 3
    assert told[-2] == {"status": "terminated"}
    assert is_exact(told[-1])
