"""A worker's copies of programs: fetched once, verified, never half there."""

import hashlib
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.programs.fetch import ArtifactCache
from gearpy.errors import ConfigError, ConnectionLost
from gearpy.messages.client import Artifact, ArtifactPart, GetArtifactPart, Refused
from gearpy.storage.archives import ArtifactLimits

LIMITS: Final = ArtifactLimits(bytes_max=1000, unpacked_bytes_max=10_000, files_max=10)
DATA: Final = b"x = 1\n" * 50
ARTIFACT: Final = Artifact(
    kind="stored", location=hashlib.sha256(DATA).hexdigest(), filename="app.py"
)


class Master:
    def __init__(self, data: bytes = DATA, part: int = 100) -> None:
        self.data = data
        self.part = part
        self.asked = 0
        self._lock = threading.Lock()

    def __call__(self, message: GetArtifactPart) -> Any:
        with self._lock:
            self.asked += 1
        end = message.offset + self.part
        return ArtifactPart(
            sha256=message.sha256,
            offset=message.offset,
            data=self.data[message.offset : end],
            last=end >= len(self.data),
        )


def names_in(folder: Path) -> set[str]:
    """Return what is in the cache, but for the locks."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def test_a_program_is_fetched_once(tmp_path: Path) -> None:
    """By parts; the second time it is there, also for another process."""
    master = Master()

    first = ArtifactCache(tmp_path, master, LIMITS).path_of(ARTIFACT)
    second = ArtifactCache(tmp_path, master, LIMITS).path_of(ARTIFACT)

    assert first is not None
    assert first == second
    assert (first / "app.py").read_bytes() == DATA
    assert master.asked == 3
    assert names_in(tmp_path) == {first.name}


def test_who_comes_meanwhile_waits(tmp_path: Path) -> None:
    """All executors of an application start at once on a worker."""
    master, found = Master(), list[Path | None]()
    go = threading.Barrier(6)

    def executor() -> None:
        cache = ArtifactCache(tmp_path, master, LIMITS)
        go.wait()
        found.append(cache.path_of(ARTIFACT))

    executors = [threading.Thread(target=executor) for _ in range(6)]
    for each in executors:
        each.start()
    for each in executors:
        each.join()

    assert len(found) == 6
    assert len(set(found)) == 1
    assert master.asked == 3


def bad(**changes: Any) -> Callable[[Any], Any]:
    """Return a master whose parts are wrong in some way."""
    return lambda message: replace(Master()(message), **changes)


@pytest.mark.parametrize(
    ("ask", "message"),
    ids=range(8),
    argvalues=[
        (Master(DATA[:-1] + b"#"), "from the master: submit the program again"),
        (Master(b""), "came as e3b0c44298fc from the master"),
        (Master(b"#" * 2000), "has more than 1000 bytes: raise artifact.max-bytes"),
        (bad(offset=1), "answered something else"),
        (bad(sha256="0" * 64), "answered something else"),
        (bad(data=b"", last=False), "answered something else"),
        (lambda _: None, "answered something else"),
        (lambda _: Refused(reason="the master has no artifact x"), "the master has no artifact x"),
    ],
)
def test_wrong_content_is_refused_and_not_kept(
    tmp_path: Path, ask: Callable[[Any], Any], message: str
) -> None:
    """What runs is what was submitted, or nothing."""
    with pytest.raises(ConfigError, match=message):
        ArtifactCache(tmp_path, ask, LIMITS).path_of(ARTIFACT)

    assert names_in(tmp_path) == set()


def test_a_bad_archive_is_refused_and_not_kept(tmp_path: Path) -> None:
    """Its bytes are what was submitted, but they are no program."""
    with pytest.raises(ConfigError, match=r"app.zip is damaged"):
        ArtifactCache(tmp_path, Master(), LIMITS).path_of(replace(ARTIFACT, filename="app.zip"))

    assert names_in(tmp_path) == set()


@pytest.mark.parametrize(
    "artifact",
    [
        replace(ARTIFACT, location="../../etc"),
        replace(ARTIFACT, filename="../app.py"),
        replace(ARTIFACT, filename=""),
    ],
)
def test_names_stay_within_the_folder(tmp_path: Path, artifact: Artifact) -> None:
    cache = ArtifactCache(tmp_path, Master(), LIMITS)

    for use in (cache.path_of, cache.drop):
        with pytest.raises(ConfigError):
            use(artifact)

    assert names_in(tmp_path) == set()


def test_after_a_lost_connection_it_is_fetched_again(tmp_path: Path) -> None:
    """The master was away; nothing half is left."""
    master = Master()

    def away(message: GetArtifactPart) -> Any:
        if message.offset == 200:
            raise ConnectionLost("gone")
        return master(message)

    with pytest.raises(ConnectionLost):
        ArtifactCache(tmp_path, away, LIMITS).path_of(ARTIFACT)
    assert names_in(tmp_path) == set()

    assert ArtifactCache(tmp_path, master, LIMITS).path_of(ARTIFACT) is not None


def test_what_a_killed_process_has_left_is_no_harm(tmp_path: Path) -> None:
    """It may have died in the middle of either step."""
    cache = ArtifactCache(tmp_path, Master(), LIMITS)
    ready = cache.path_of(ARTIFACT)
    assert ready is not None
    shutil.rmtree(ready)
    (tmp_path / f"{ready.name}.packed").write_bytes(b"half")
    (tmp_path / f"{ready.name}.unpacked").mkdir()
    (tmp_path / f"{ready.name}.unpacked" / "app.py").write_bytes(b"half")

    assert cache.path_of(ARTIFACT) == ready

    assert (ready / "app.py").read_bytes() == DATA
    assert names_in(tmp_path) == {ready.name}


def test_a_dropped_program_is_fetched_again(tmp_path: Path) -> None:
    master = Master()
    cache = ArtifactCache(tmp_path, master, LIMITS)
    cache.path_of(ARTIFACT)

    cache.drop(ARTIFACT)

    assert names_in(tmp_path) == set()
    cache.path_of(ARTIFACT)
    assert master.asked == 6
