"""A worker's copies of programs: fetched once, verified, never half there."""

import hashlib
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

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
    return {path.name for path in folder.iterdir() if path.suffix not in {".lock", ".used"}}


def test_a_program_is_fetched_once(tmp_path: Path) -> None:
    master = Master()

    first = ArtifactCache(tmp_path, master, LIMITS).path_of(ARTIFACT)
    second = ArtifactCache(tmp_path, master, LIMITS).path_of(ARTIFACT)

    assert first is not None
    assert first == second
    assert (first / "app.py").read_bytes() == DATA
    assert master.asked == 3
    assert names_in(tmp_path) == {first.name}


def test_who_comes_meanwhile_waits(tmp_path: Path) -> None:
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
    with pytest.raises(ConfigError, match=message):
        ArtifactCache(tmp_path, ask, LIMITS).path_of(ARTIFACT)

    assert names_in(tmp_path) == set()


def test_a_bad_archive_is_refused_and_not_kept(tmp_path: Path) -> None:
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

    with pytest.raises(ConfigError):
        cache.path_of(artifact)

    assert names_in(tmp_path) == set()


def test_after_a_lost_connection_it_is_fetched_again(tmp_path: Path) -> None:
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


def artifact_of(number: int) -> Artifact:
    sha256 = hashlib.sha256(data_of(number)).hexdigest()
    return Artifact(kind="stored", location=sha256, filename="app.py")


def data_of(number: int) -> bytes:
    return b"x = %095d\n" % number


def use(folder: Path, number: int, *, quota: int) -> ArtifactCache:
    """Ask for a program as a process that has just begun; return what it holds."""
    cache = ArtifactCache(folder, Master(data_of(number)), LIMITS, quota_bytes=quota)
    assert cache.path_of(artifact_of(number)) is not None
    return cache


def kept(folder: Path) -> set[int]:
    """Return the programs that are there; nothing else is, but for their locks."""
    hashes = {artifact_of(number).location: number for number in range(10)}
    locks = {path.stem for path in folder.iterdir() if path.suffix in {".lock", ".used"}}
    assert locks == names_in(folder)
    return {hashes[name.partition("-")[0]] for name in names_in(folder)}


def test_programs_that_were_used_longest_ago_go(tmp_path: Path) -> None:
    for number in (0, 1, 2, 0):  # The first one is used once more.
        use(tmp_path, number, quota=300).close()

    use(tmp_path, 3, quota=300).close()

    assert kept(tmp_path) == {0, 2, 3}


def test_a_program_that_a_process_needs_stays(tmp_path: Path) -> None:
    running = use(tmp_path, 0, quota=100)
    again = use(tmp_path, 0, quota=100)
    use(tmp_path, 1, quota=100).close()
    assert kept(tmp_path) == {0, 1}
    running.close()
    use(tmp_path, 2, quota=100).close()
    assert kept(tmp_path) == {0, 2}

    again.close()
    use(tmp_path, 3, quota=100).close()

    assert kept(tmp_path) == {3}


def test_without_a_quota_all_stay(tmp_path: Path) -> None:
    for number in range(5):
        use(tmp_path, number, quota=0).close()

    assert kept(tmp_path) == set(range(5))


def test_what_a_killed_process_has_left_goes_too(tmp_path: Path) -> None:
    name = f"{artifact_of(0).location}-app.py"
    (tmp_path / f"{name}.packed").write_bytes(bytes(500))
    (tmp_path / f"{name}.unpacked").mkdir()
    (tmp_path / f"{name}.unpacked" / "app.py").write_bytes(bytes(500))

    use(tmp_path, 1, quota=300).close()

    assert kept(tmp_path) == {1}


def test_whoever_asks_finds_a_whole_program_while_others_remove_it(tmp_path: Path) -> None:
    wrong: list[Exception | bytes] = []

    def process(first: int) -> None:
        for turn in range(20):
            number = (first + turn) % 6
            try:
                cache = use(tmp_path, number, quota=100)
                folder = cache.path_of(artifact_of(number))
                assert folder is not None
                found = (folder / "app.py").read_bytes()
                if found != data_of(number):
                    wrong.append(found)
                cache.close()
            except Exception as error:  # noqa: BLE001 - told below
                wrong.append(error)

    processes = [threading.Thread(target=process, args=(each,)) for each in range(6)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()

    assert wrong == []
