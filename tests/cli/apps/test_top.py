"""``gear top``: once for scripts, again and again in a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time

from msgspec.structs import replace

from gearpy.messages.client import DescribeApplication
from tests.cli.build import Gear
from tests.eventually import DEADLINE_S


def test_without_a_terminal_it_prints_once(gear: Gear) -> None:
    shown = gear("top", "shop")

    assert shown.startswith("shop  active  application 2")
    assert "map(price) (task 1.0) has sent records" in shown
    assert len(gear.cluster.asked_of(DescribeApplication)) == 2


def test_of_a_cluster_it_prints_all_applications(gear: Gear) -> None:
    lines = gear("top", "--once").splitlines()

    assert lines[0] == (
        "cluster k3f9a1c2 · 2 workers · 3 of 16 slots in use · 1 living application"
    )
    assert [line.split()[1] for line in lines[3:]] == ["shop", "orders", "clicks"]


def test_what_has_ended_is_looked_at_once(gear: Gear) -> None:
    view = json.loads(gear("top", "3", "--json"))

    assert view["headline"]["text"].startswith("it has failed: map(price)")
    assert len(gear.cluster.asked_of(DescribeApplication)) == 1


def test_in_a_terminal_it_goes_on_until_q(gear: Gear) -> None:
    """It shows what changes, sorts at ``s``, and leaves the terminal as it was."""
    master, slave = pty.openpty()
    command = (sys.executable, "-m", "gearpy", "top", "2", "--every", "0.2")
    where = ("--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen([*command, *where], stdin=slave, stdout=slave, env=environment)
    try:
        _read_until(master, "now by flow")
        gear.cluster.detail = replace(gear.cluster.detail, why=())
        _read_until(master, "gear quarantine list shop")
        os.write(master, b"s")
        _read_until(master, "now by rate")
        os.write(master, b"q")
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def _read_until(descriptor: int, words: str, timeout_s: float = DEADLINE_S) -> None:
    deadline_s, seen = time.monotonic() + timeout_s, ""
    while words not in seen:
        left_s = deadline_s - time.monotonic()
        assert left_s > 0, seen
        ready, _, _ = select.select([descriptor], [], [], left_s)
        if ready:
            seen += os.read(descriptor, 65536).decode(errors="replace")
