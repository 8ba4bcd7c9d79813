"""HDFS whose nodes and users log in by Kerberos: who has a ticket can work, nobody else."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.servers.fixtures import skipped_if_unavailable
from tests.servers.hdfs import SUPERUSER, Hdfs
from tests.servers.kerberos import Kdc, library

pytestmark = pytest.mark.long

_ROOT: Final = Path(__file__).parents[3]
#: Rows through a folder sink and checkpoints into a folder of the store, and back.
PROGRAM: Final = """\
import sys

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.storage.checkpoints import FolderCheckpoints

saved, save = [], FolderCheckpoints.save


def save_and_load(self, name, chunks):
    stored = save(self, name, chunks)
    saved.append(self.load(stored.location, stored.sha256))
    return stored


FolderCheckpoints.save = save_and_load
url, source = sys.argv[1], gp.generate(lambda: range(2000), rate=2000, limit=2000)
app, found = gp.StreamApp("numbers"), []
app.read(source).map(lambda n: {"n": n}).write(gp.parquet_folder(f"{url}/rows"))
config = load(env={}, overrides={"checkpoint.folder": f"{url}/checkpoints"})
with LocalCluster(config, durable=True) as cluster:
    cluster.client.submit(
        "numbers", embed(app.build()), config={"checkpoint.interval-ms": "100"}
    ).wait(120)
app = gp.StreamApp("back")
app.read(gp.parquet(f"{url}/rows/*.parquet")).write(gp.to_list(found))
gp.run(app)
print("back:", sorted(row["n"] for row in found) == [*range(2000)], len(saved) > 0)
"""
OPEN: Final = """\
import sys

from gearpy.storage.folder.at import file_system_at

files, path = file_system_at(sys.argv[1])
files.mkdir(path)
files._call("SETPERMISSION", "put", path=path, permission=sys.argv[2])
print("owner:", files.info(path)["owner"])
"""


class Secure:
    def __init__(self, kdc: Kdc, cluster: Hdfs, env: Mapping[str, str]) -> None:
        self.kdc = kdc
        self._url = f"webhdfs://{cluster.address.web}"
        self._env = env

    def run(self, program: str, path: str, *more: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, f"{self._url}{path}", *more],
            env={**os.environ, **self._env, **env},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """Return a cluster where ann may write below ``/open`` alone."""
    folder = tmp_path_factory.mktemp("secure")
    with skipped_if_unavailable():
        paths = os.pathsep.join((str(_ROOT), library()))
        kdc = Kdc(folder / "kdc")
    with kdc.server:
        with skipped_if_unavailable():
            cluster = Hdfs(folder / "hdfs", kdc)
        with cluster:
            made = Secure(kdc, cluster, {"PYTHONPATH": paths, "FSSPEC_WEBHDFS_KERBEROS": "true"})
            admin = kdc.ticket(SUPERUSER)
            for path, rights in (("/open", "777"), ("/closed", "700")):
                assert "owner: nn\n" in made.run(OPEN, path, rights, **admin)
            yield made


def test_who_has_a_ticket_writes_and_reads(secure: Secure) -> None:
    """A folder sink, checkpoints, and files as a source; what is made is the user's own."""
    ann = secure.kdc.ticket("ann")

    assert "back: True True" in secure.run(PROGRAM, "/open/work", **ann)
    assert "owner: ann\n" in secure.run(OPEN, "/open/own", "700", **ann)


def test_who_lacks_a_right_is_told(secure: Secure) -> None:
    said = secure.run(PROGRAM, "/closed/work", **secure.kdc.ticket("ann"))

    assert "Permission denied: user=ann" in said
    assert "back:" not in said


def test_who_lacks_a_ticket_is_told(secure: Secure) -> None:
    said = secure.run(PROGRAM, "/open/other", **secure.kdc.without_ticket())

    assert "takes no ticket of this user: look at klist, and run kinit" in said


def test_who_does_not_log_in_is_told(secure: Secure) -> None:
    ann = secure.kdc.ticket("ann")
    said = secure.run(PROGRAM, "/open/other", **{**ann, "FSSPEC_WEBHDFS_KERBEROS": ""})

    assert "asks for a login by Kerberos: set FSSPEC_WEBHDFS_KERBEROS=true" in said
