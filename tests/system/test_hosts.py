"""A cluster on machines of its own, whose network has faults: its answer is right."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.hosts import Hosts, why_no_hosts
from tests.bench.hosts_run import KINDS, run_hosts

pytestmark = pytest.mark.long


def test_answer_is_right_though_machines_are_cut_off_and_lost(tmp_path: Path) -> None:
    """Three masters, two workers and a client, with TLS and names; each kind of fault once."""
    if reason := why_no_hosts():
        pytest.skip(reason)

    run = run_hosts(tmp_path, seed=1, faults=len(KINDS))

    assert run.problem == ""
    assert {kind for kind, _ in run.done} == set(KINDS)
    assert run.leaders >= 6


def namespaces(tag: str) -> list[str]:
    found = subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in found.splitlines() if line.startswith(tag)]


_MAKE = """\
import subprocess, sys
from pathlib import Path
from tests.bench.hosts import Hosts
with Hosts(Path(sys.argv[1]), ["one"]) as hosts:
    with subprocess.Popen([*hosts.on("one"), "sleep", "3600"]) as inside:
        print(hosts.tag, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_machines_whose_maker_is_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    if reason := why_no_hosts():
        pytest.skip(reason)
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, '')\n{_MAKE}"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [*command, str(tmp_path / "hosts")], cwd=root, stdout=subprocess.PIPE, text=True
    ) as maker:
        assert maker.stdout is not None
        tag = maker.stdout.readline().strip()
        assert len(namespaces(tag)) == 2
        maker.send_signal(number)
        maker.wait()

    if number is signal.SIGKILL:
        with Hosts(tmp_path / "next", ["one"]):
            pass

    assert namespaces(tag) == []
