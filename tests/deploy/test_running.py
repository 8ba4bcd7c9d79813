"""The processes that the files for deployment start do start, answer their probes, and end."""

import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.process_cluster import free_port
from tests.deploy.parts import (
    DEPLOY,
    KUBERNETES,
    Changes,
    Part,
    of_compose,
    of_kubernetes,
    of_systemd,
)
from tests.eventually import eventually

WITHIN_S: Final = 120.0
GEAR: Final = str(Path(sys.executable).with_name("gear"))
MASTER: Final = re.search(r'"(.*:3000)"', (KUBERNETES / "gear.toml").read_text())
PROGRAM: Final = """
import gearpy as gp

app = gp.StreamApp("squares")
app.read(gp.collection(range(9))).map(lambda n: n * n).write(gp.text_file("{}"))
"""


class Running:
    """A part as a process of this machine."""

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
        """Wait until it has said this."""

        def found() -> re.Match[str] | None:
            has_ended = self.process.poll() is not None
            said = self.said.read_text(encoding="utf-8")
            match = re.search(pattern, said)
            assert match or not has_ended, said
            return match

        match: re.Match[str] = eventually(found, pattern, within_s=WITHIN_S)
        return match

    def stop(self) -> int:
        """Ask it to end, as all of these ways do."""
        self.process.terminate()
        return self.process.wait(WITHIN_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def started(parts: Iterator[Part], folder: Path) -> Iterator[dict[str, Running]]:
    """Start the master, then all others; give them when they are ready."""
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for part in sorted(parts, key=lambda each: each.name != "master"):
            for command in part.before:
                subprocess.run(command, check=True, timeout=WITHIN_S)
            running[part.name] = Running(part, folder)
            stack.callback(running[part.name].kill)
            running[part.name].wait_for(" ready")
        yield running


def probed(probe: Mapping[str, Any], port: int) -> None:
    """Ask as the kubelet does; it takes any answer from 200 to 399."""
    if "tcpSocket" in probe:
        socket.create_connection(("127.0.0.1", port), WITHIN_S).close()
        return
    asked = probe["httpGet"]
    headers = {each["name"]: each["value"] for each in asked.get("httpHeaders", ())}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{asked['path']}", headers=headers)
    with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:  # noqa: S310
        assert answer.read()


def runs_a_program(folder: Path, master: Running, address: str) -> None:
    """Submit a program, and see its results, as a user of the cluster."""
    (folder / "program.py").write_text(PROGRAM.format(folder / "squares.txt"))
    env = {**os.environ, **master.part.env, "HOME": str(folder)}
    submit = [GEAR, "app", "submit", "--master", address, str(folder / "program.py")]
    subprocess.run(submit, env=env, check=True, capture_output=True, timeout=WITHIN_S)
    written = folder / "squares.txt"
    expected = [str(n * n) for n in range(9)]
    eventually(
        lambda: written.exists() and written.read_text().split() == expected, within_s=WITHIN_S
    )


def a_token(file: Path) -> None:
    where = ("--set", f"services.token-file={file}")
    subprocess.run([GEAR, "token", "add", "ann", *where], check=True, timeout=WITHIN_S)


def test_pods(tmp_path: Path) -> None:
    """With the configuration that they share; probes are asked as the kubelet does."""
    assert MASTER is not None
    master = f"127.0.0.1:{free_port()}"
    (tmp_path / "run").mkdir()
    change = Changes(
        **{
            MASTER[1]: master,
            "s3://bucket": str(tmp_path / "store"),
            "0.0.0.0:9400": "0.0.0.0:0",
            "8090": "0",
            "/etc/gearpy": str(tmp_path),
            "/given/secret": str(tmp_path / "given"),
            "/tokens/tokens": str(tmp_path / "tokens"),
            "/run/gearpy": str(tmp_path / "run"),
            "/var/lib/gearpy": str(tmp_path / "lib"),
        }
    )
    toml = change((KUBERNETES / "gear.toml").read_text())
    (tmp_path / "gear.toml").write_text(toml + '[gearpy.log]\nfolder = "logs"\n')
    (tmp_path / "given").write_text("5a" * 32)
    (tmp_path / "given").chmod(0o440)
    a_token(tmp_path / "tokens")

    with started(of_kubernetes(change), tmp_path) as running:
        assert set(running) == {"master", "worker", "services"}
        ports = {"3000": int(master.rpartition(":")[2])}
        for each in running.values():
            ports["9400"] = ports["8090"] = int(each.wait_for(r"http://[^ ]*?:(\d+)")[1])
            for probe in each.part.probes:
                (asked,) = (probe[kind] for kind in ("httpGet", "tcpSocket") if kind in probe)
                probed(probe, ports[asked["port"]])
        runs_a_program(tmp_path, running["master"], master)
        assert [running[name].stop() for name in ("services", "worker", "master")] == [0, 0, 0]
    assert (tmp_path / "run" / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_services_of_compose(tmp_path: Path) -> None:
    master = f"127.0.0.1:{free_port()}"
    change = Changes(
        **{
            "master:3000": master,
            "0.0.0.0:9400": "0.0.0.0:0",
            "8090": "0",
            "/var/lib/gearpy": str(tmp_path / "lib"),
        }
    )
    a_token(tmp_path / "lib" / "cluster" / "tokens")

    with started(of_compose(change), tmp_path) as running:
        runs_a_program(tmp_path, running["master"], master)
        assert [running[name].stop() for name in ("services", "worker", "master")] == [0, 0, 0]


@pytest.mark.long
def test_units_of_systemd(tmp_path: Path) -> None:
    """With certificates, which the configuration asks for."""
    master = f"127.0.0.1:{free_port()}"
    change = Changes(
        **{
            "machine1.example.org:3000": master,
            "machine1.example.org": "127.0.0.1",
            "s3://bucket": str(tmp_path / "store"),
            "--metrics 9400": "--metrics 0",
            "--metrics 9401": "--metrics 0",
            "--port 8090": "--port 0",
            "/etc/gearpy": str(tmp_path / "etc"),
            "/var/log/gearpy": str(tmp_path / "log"),
            "/var/lib/gearpy": str(tmp_path / "lib"),
        }
    )
    certs = [GEAR, "certs", "init", "--folder", str(tmp_path / "etc" / "certs")]
    subprocess.run(certs, check=True, capture_output=True, timeout=WITHIN_S)
    toml = (DEPLOY / "systemd" / "gear.toml").read_text()
    (tmp_path / "etc" / "gear.toml").write_text(change(toml))

    with started(of_systemd(change), tmp_path) as running:
        runs_a_program(tmp_path, running["master"], master)
        assert [running[name].stop() for name in ("services", "worker", "master")] == [0, 0, 0]
