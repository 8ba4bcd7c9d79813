"""The processes that the files for deployment start do start, answer their probes, and end."""

import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.process_cluster import free_port
from tests.deploy.parts import (
    DEPLOY,
    KUBERNETES,
    POD,
    Changes,
    Part,
    of_compose,
    of_kubernetes,
    of_systemd,
)
from tests.eventually import eventually

WITHIN_S: Final = 120.0
GEAR: Final = str(Path(sys.executable).with_name("gear"))
#: Each machine, or pod, is an address of this one: masters all listen at one port.
HOSTS: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
PROGRAM: Final = """
import gearpy as gp

app = gp.StreamApp("squares")
app.read(gp.collection(range(9))).map(lambda n: n * n).write(gp.text_file("{}"))
"""


class Running:
    def __init__(self, part: Part, folder: Path) -> None:
        self.part = part
        self.said = folder / f"{part.name}.said"
        env = {key: value for key, value in os.environ.items() if not key.startswith("GEARPY_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                part.command,
                cwd=folder,
                env={**env, "PATH": path, "HOME": str(folder), **part.env},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, pattern: str) -> re.Match[str]:
        def found() -> re.Match[str] | None:
            has_ended = self.process.poll() is not None
            said = self.said.read_text(encoding="utf-8")
            match = re.search(pattern, said)
            assert match or not has_ended, said
            return match

        match: re.Match[str] = eventually(found, pattern, within_s=WITHIN_S)
        return match

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(WITHIN_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def started(parts: Iterator[Part], folder: Path) -> Iterator[dict[str, Running]]:
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for part in sorted(parts, key=lambda each: "master" not in each.name):
            for command in part.before:
                subprocess.run(command, check=True, timeout=WITHIN_S)
            running[part.name] = Running(part, folder)
            stack.callback(running[part.name].kill)
            running[part.name].wait_for(" ready")
        yield running


def probed(probe: Mapping[str, Any], host: str, port: int) -> None:
    """Ask as the kubelet does; it takes any answer from 200 to 399."""
    if "tcpSocket" in probe:
        socket.create_connection((host, port), WITHIN_S).close()
        return
    asked = probe["httpGet"]
    headers = {each["name"]: each["value"] for each in asked.get("httpHeaders", ())}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{asked['path']}", headers=headers)
    with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:  # noqa: S310
        assert answer.read()


def runs_a_program(folder: Path, master: Running, name: str = "squares") -> None:
    """Submit a program, and see its results, as a user of the cluster."""
    written = folder / f"{name}.txt"
    (folder / "program.py").write_text(PROGRAM.format(written))
    env = {**os.environ, **master.part.env, "HOME": str(folder)}
    submit = [GEAR, "app", "submit", "--name", name, str(folder / "program.py")]
    subprocess.run(submit, env=env, check=True, capture_output=True, timeout=WITHIN_S)
    expected = [str(n * n) for n in range(9)]
    eventually(
        lambda: written.exists() and written.read_text().split() == expected, within_s=WITHIN_S
    )


def loses_a_master(folder: Path, masters: list[Running]) -> None:
    """Kill one of three; the others take programs."""
    masters[0].kill()
    runs_a_program(folder, masters[1], "again")


def a_token(file: Path) -> None:
    where = ("--set", f"services.token-file={file}")
    subprocess.run([GEAR, "token", "add", "ann", *where], check=True, timeout=WITHIN_S)


def test_pods(tmp_path: Path) -> None:
    control = free_port()
    pods = {
        f"gearpy-master-{n}.gearpy-master.gearpy.svc.cluster.local": host
        for n, host in enumerate(HOSTS)
    }
    change = Changes(
        **pods,
        **{f"{pod}:3000": f"{host}:{control}" for pod, host in pods.items()},
        **{
            "s3://bucket": str(tmp_path / "store"),
            "0.0.0.0:9400": "0.0.0.0:0",
            "8090": "0",
            "/etc/gearpy": str(tmp_path),
            "/given/secret": str(tmp_path / "given"),
            "/tokens/tokens": str(tmp_path / "tokens"),
            "/run/gearpy": f"{tmp_path}/{POD}",
            "/var/lib/gearpy": f"{tmp_path}/{POD}/lib",
        },
    )
    toml = change((KUBERNETES / "gear.toml").read_text()).replace(POD, "shared")
    (tmp_path / "gear.toml").write_text(toml + '[gearpy.log]\nfolder = "logs"\n')
    (tmp_path / "given").write_text("5a" * 32)
    (tmp_path / "given").chmod(0o440)
    a_token(tmp_path / "tokens")
    parts = list(of_kubernetes(change))
    for part in parts:
        (tmp_path / part.name).mkdir()

    with started(iter(parts), tmp_path) as running:
        masters = [running.pop(f"gearpy-master-{n}") for n in range(3)]
        assert set(running) == {"gearpy-worker-0", "gearpy-services-0"}
        for each in (*masters, *running.values()):
            metrics = int(each.wait_for(r"http://[^ ]*?:(\d+)")[1])
            for probe in each.part.probes:
                (asked,) = (probe[kind] for kind in ("httpGet", "tcpSocket") if kind in probe)
                host = each.part.env.get("GEARPY_HOSTNAME", "127.0.0.1")
                probed(probe, host, control if asked["port"] == "3000" else metrics)
        runs_a_program(tmp_path, masters[0])
        assert [each.stop() for each in (*running.values(), *masters)] == [0] * 5
    assert (tmp_path / "gearpy-master-0" / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
@pytest.mark.parametrize("more", [(), ("compose.masters.yaml",)])
def test_services_of_compose(tmp_path: Path, more: tuple[str, ...]) -> None:
    control = free_port()
    names = dict(zip(("master", "master2", "master3"), HOSTS, strict=True))
    change = Changes(
        **{f"{name}:3000": f"{host}:{control}" for name, host in names.items()},
        **{
            "0.0.0.0:9400": "0.0.0.0:0",
            "8090": "0",
            "/var/lib/gearpy/master": f"{tmp_path}/lib/{POD}",
            "/var/lib/gearpy": str(tmp_path / "lib"),
        },
    )
    a_token(tmp_path / "lib" / "cluster" / "tokens")
    parts = [
        replace(part, env={**part.env, "GEARPY_HOSTNAME": names.get(part.name, HOSTS[0])})
        for part in of_compose(change, *more)
    ]

    with started(iter(parts), tmp_path) as running:
        masters = [each for name, each in running.items() if "master" in name]
        assert len(masters) == 1 + 2 * len(more)
        runs_a_program(tmp_path, masters[0])
        if more:
            loses_a_master(tmp_path, masters)
        assert [running[name].stop() for name in ("services", "worker")] == [0, 0]
        assert masters[-1].stop() == 0


@pytest.mark.long
def test_units_of_systemd(tmp_path: Path) -> None:
    control = free_port()
    machines = {f"machine{n + 1}.example.org": host for n, host in enumerate(HOSTS)}
    certs = [GEAR, "certs", "init", "--folder", str(tmp_path / "certs")]
    hosts = [word for host in HOSTS for word in ("--host", host)]
    subprocess.run([*certs, *hosts], check=True, capture_output=True, timeout=WITHIN_S)
    parts: list[Part] = []
    for machine, host in machines.items():
        here = tmp_path / machine
        change = Changes(
            **machines,
            **{f"{each}:3000": f"{at}:{control}" for each, at in machines.items()},
            **{
                "s3://bucket": str(tmp_path / "store"),
                "--metrics 9400": "--metrics 0",
                "--metrics 9401": "--metrics 0",
                "--port 8090": "--port 0",
                "/etc/gearpy/certs": str(tmp_path / "certs"),
                "/etc/gearpy/secret": str(tmp_path / "secret"),
                "/etc/gearpy": str(here),
                "/var/log/gearpy": str(here / "log"),
                "/var/lib/gearpy": str(here / "lib"),
            },
        )
        here.mkdir()
        toml = (DEPLOY / "systemd" / "gear.toml").read_text()
        own = toml.replace('hostname = "machine1', f'hostname = "{machine.partition(".")[0]}')
        (here / "gear.toml").write_text(change(own))
        parts += [
            replace(part, name=f"{part.name}@{host}")
            for part in of_systemd(change)
            if part.name == "master" or host == HOSTS[0]
        ]

    with started(iter(parts), tmp_path) as running:
        masters = [running[f"master@{host}"] for host in HOSTS]
        runs_a_program(tmp_path, masters[0])
        loses_a_master(tmp_path, masters)
        others = (running[f"{name}@{HOSTS[0]}"] for name in ("services", "worker"))
        assert [each.stop() for each in (*others, masters[2])] == [0, 0, 0]
