"""Uploads: in order, resumed, verified, within limits; and what a master answers to them."""

import hashlib
import threading
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gearpy.errors import ConfigError
from gearpy.ids import AppId
from gearpy.messages.client import (
    Artifact,
    ArtifactMissing,
    ArtifactPart,
    ArtifactStored,
    GetArtifactPart,
    HasArtifact,
    Refused,
    UploadArtifact,
)
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.artifacts import PART_BYTES, UPLOADS_MAX, ArtifactDesk, ArtifactStore
from gearpy.storage.folder.local import LocalFolder

DATA: Final = b"print('hello')\n" * 100


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SHA: Final = sha_of(DATA)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", 1_000_000)


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "artifacts").iterdir())


def test_what_was_uploaded_in_parts_is_stored_whole(store: ArtifactStore, tmp_path: Path) -> None:
    assert not store.write(SHA, offset=0, data=DATA[:700], last=False)
    assert store.received(SHA) == 700
    assert not store.has(SHA)
    assert store.write(SHA, offset=700, data=DATA[700:], last=True)

    assert store.has(SHA)
    assert store.size(SHA) == len(DATA)
    assert store.read(SHA, offset=0, count=10_000) == DATA
    assert store.read(SHA, offset=690, count=20) == DATA[690:710]
    assert store.shas() == (SHA,)
    assert files_of(tmp_path) == [SHA]


def test_an_upload_goes_on_where_it_stopped(store: ArtifactStore) -> None:
    store.write(SHA, offset=0, data=DATA[:700], last=False)

    assert not store.write(SHA, offset=900, data=DATA[900:], last=True)  # A gap: not taken.
    assert store.received(SHA) == 700
    assert not store.write(SHA, offset=0, data=DATA[:500], last=False)  # Known already.
    assert not store.write(SHA, offset=500, data=DATA[500:800], last=False)  # Half of it is.
    assert store.received(SHA) == 800
    assert store.write(SHA, offset=800, data=DATA[800:], last=True)
    assert store.write(SHA, offset=800, data=DATA[800:], last=True)  # The answer was lost.


def test_other_bytes_than_announced_are_not_kept(store: ArtifactStore, tmp_path: Path) -> None:
    """A name in the store is a promise of its content; the next try begins anew."""
    with pytest.raises(ConfigError, match="was announced as"):
        store.write(SHA, offset=0, data=DATA + b"#", last=True)

    assert files_of(tmp_path) == []
    assert store.received(SHA) == 0
    assert store.write(SHA, offset=0, data=DATA, last=True)


@pytest.mark.parametrize(
    ("offset", "data"), [(0, bytes(1_000_001)), (1_000_000, b"1"), (-1, b"x"), (1 << 60, b"x")]
)
def test_what_is_too_large_is_refused_at_once(
    store: ArtifactStore, offset: int, data: bytes
) -> None:
    with pytest.raises(ConfigError, match=r"at most 1000000 are taken: raise artifact\.max-bytes"):
        store.write(SHA, offset=offset, data=data, last=False)


@pytest.mark.parametrize(
    "name", ["", "../../etc/passwd", SHA.upper(), SHA + "0", SHA[:-1] + "/", "\0" * 64, SHA + "\n"]
)
def test_only_a_sha_names_an_artifact(store: ArtifactStore, name: str) -> None:
    for use in (
        store.has,
        store.size,
        store.drop,
        lambda name: store.read(name, offset=0, count=1),
        lambda name: store.write(name, offset=0, data=b"x", last=True),
    ):
        with pytest.raises(ConfigError, match="is no SHA-256"):
            use(name)


def test_a_restart_keeps_what_is_stored_and_nothing_else(tmp_path: Path) -> None:
    before = ArtifactStore(tmp_path / "artifacts", 1_000_000)
    before.write(SHA, offset=0, data=DATA, last=True)
    before.write(sha_of(b"other"), offset=0, data=b"oth", last=False)

    after = ArtifactStore(tmp_path / "artifacts", 1_000_000)

    assert after.has(SHA)
    assert files_of(tmp_path) == [SHA]
    assert after.write(sha_of(b"other"), offset=0, data=b"other", last=True)


def test_what_has_rotted_is_dropped_so_that_it_can_come_again(tmp_path: Path) -> None:
    """Else its SHA-256 would keep every upload of it out, and no worker could run it."""
    ArtifactStore(tmp_path / "artifacts", 1_000_000).write(SHA, offset=0, data=DATA, last=True)
    (tmp_path / "artifacts" / SHA).write_bytes(DATA[:-1] + b"#")
    store = ArtifactStore(tmp_path / "artifacts", 1_000_000)

    assert not store.has(SHA)
    assert store.write(SHA, offset=0, data=DATA, last=True)
    assert store.read(SHA, offset=0, count=10_000) == DATA


def test_an_upload_that_others_meddle_with_is_given_up(
    store: ArtifactStore, tmp_path: Path
) -> None:
    store.write(SHA, offset=0, data=DATA[:700], last=False)
    ArtifactStore(tmp_path / "artifacts", 1_000_000)

    with pytest.raises(ConfigError, match="was changed by others"):
        store.write(SHA, offset=700, data=DATA[700:], last=True)

    assert not store.has(SHA)


def test_dropping_removes_an_artifact_and_an_upload(store: ArtifactStore, tmp_path: Path) -> None:
    store.write(SHA, offset=0, data=DATA, last=True)
    store.write(sha_of(b"other"), offset=0, data=b"oth", last=False)

    for name in (SHA, SHA, sha_of(b"other")):
        store.drop(name)

    assert files_of(tmp_path) == []
    with pytest.raises(ConfigError, match="has no artifact"):
        store.read(SHA, offset=0, count=1)


def test_abandoned_uploads_give_way(store: ArtifactStore, tmp_path: Path) -> None:
    """Their number has a limit; the one that has waited longest goes first."""
    all_data = [f"program {number}".encode() for number in range(UPLOADS_MAX + 1)]
    for data in all_data:
        store.write(sha_of(data), offset=0, data=data[:3], last=False)

    assert len(files_of(tmp_path)) == UPLOADS_MAX
    assert store.received(sha_of(all_data[0])) == 0
    assert all(store.received(sha_of(data)) == 3 for data in all_data[1:])


def test_clients_may_upload_the_same_at_the_same_time(store: ArtifactStore, tmp_path: Path) -> None:
    go, size = threading.Barrier(4), 50

    def client() -> None:
        go.wait()
        for start in range(0, len(DATA), size):
            store.write(
                SHA, offset=start, data=DATA[start : start + size], last=start + size >= len(DATA)
            )

    clients = [threading.Thread(target=client) for _ in range(4)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()

    assert store.read(SHA, offset=0, count=10_000) == DATA
    assert files_of(tmp_path) == [SHA]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=20))
def test_whatever_arrives_only_the_right_bytes_are_stored(
    parts: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Invariant: what is stored under a SHA-256 has it, whatever parts came in whatever order."""
    data = bytes(range(20))
    store = ArtifactStore(tmp_path_factory.mktemp("store"), 1000)
    for start, length in parts:
        part = data[start : start + length]
        store.write(sha_of(data), offset=start, data=part, last=start + len(part) == len(data))
        if store.has(sha_of(data)):
            assert store.read(sha_of(data), offset=0, count=100) == data
        else:
            assert store.received(sha_of(data)) <= len(data)

    received = store.received(sha_of(data))
    assert store.write(sha_of(data), offset=received, data=data[received:], last=True)


# -- the desk --------------------------------------------------------------------------------


def test_desk_answers_an_upload_and_a_fetch(store: ArtifactStore) -> None:
    desk, data = ArtifactDesk(store), b"x" * (PART_BYTES + 1)
    sha = sha_of(data)

    assert desk.answer(HasArtifact(sha256=sha)) == ArtifactMissing(sha256=sha)
    assert desk.answer(
        UploadArtifact(sha256=sha, offset=0, data=data[:PART_BYTES], last=False)
    ) == ArtifactMissing(sha256=sha, received=PART_BYTES)
    assert desk.answer(HasArtifact(sha256=sha)) == ArtifactMissing(sha256=sha, received=PART_BYTES)
    assert desk.answer(
        UploadArtifact(sha256=sha, offset=PART_BYTES, data=b"x", last=True)
    ) == ArtifactStored(sha256=sha, size=len(data))
    assert desk.answer(HasArtifact(sha256=sha)) == ArtifactStored(sha256=sha, size=len(data))
    assert desk.answer(GetArtifactPart(sha256=sha, offset=0)) == ArtifactPart(
        sha256=sha, offset=0, data=data[:PART_BYTES], last=False
    )
    assert desk.answer(GetArtifactPart(sha256=sha, offset=PART_BYTES)) == ArtifactPart(
        sha256=sha, offset=PART_BYTES, data=b"x", last=True
    )


def test_an_empty_artifact_has_one_empty_part(store: ArtifactStore) -> None:
    """A file may be empty; it is the loader that finds nothing in it."""
    desk, sha = ArtifactDesk(store), sha_of(b"")
    desk.answer(UploadArtifact(sha256=sha, offset=0, data=b"", last=True))

    assert desk.answer(GetArtifactPart(sha256=sha, offset=0)) == ArtifactPart(
        sha256=sha, offset=0, data=b"", last=True
    )


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (HasArtifact(sha256="../x"), "is no SHA-256"),
        (UploadArtifact(sha256=SHA, offset=0, data=b"#", last=True), "was announced as"),
        (UploadArtifact(sha256=SHA, offset=1 << 40, data=b"#", last=True), "at most"),
        (GetArtifactPart(sha256=SHA, offset=0), "has no artifact"),
    ],
)
def test_desk_refuses_and_never_raises(
    store: ArtifactStore, message: HasArtifact | UploadArtifact | GetArtifactPart, reason: str
) -> None:
    answer = ArtifactDesk(store).answer(message)

    assert isinstance(answer, Refused)
    assert reason in answer.reason


def test_desk_refuses_a_part_behind_the_end(store: ArtifactStore) -> None:
    """The worker would ask for ever."""
    store.write(SHA, offset=0, data=DATA, last=True)

    answer = ArtifactDesk(store).answer(GetArtifactPart(sha256=SHA, offset=len(DATA) + 1))

    assert isinstance(answer, Refused)


def test_desk_refuses_when_the_disk_fails(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts", 1_000_000)
    (tmp_path / "artifacts").rmdir()

    answer = ArtifactDesk(store).answer(UploadArtifact(sha256=SHA, offset=0, data=DATA, last=True))

    assert isinstance(answer, Refused)
    assert "cannot store or read artifacts: No such file" in answer.reason


# -- what goes, and what is not taken ------------------------------------------------------


USER: Final = ApplicationSummary(app_id=AppId(3), name="orders", status="active")


def put(store: ArtifactStore, data: bytes) -> str:
    assert store.write(sha_of(data), offset=0, data=data, last=True)
    return sha_of(data)


def test_a_sweep_removes_what_nobody_needs_for_long_enough(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts", 1000, grace_ms=10)
    needed, gone, asked = put(store, b"needed"), put(store, b"gone"), put(store, b"asked")
    users = {needed: USER}

    assert store.sweep(users, 0) == store.sweep(users, 9) == []
    assert store.has(asked)
    assert store.sweep(users, 10) == [gone]
    assert not store.has(gone)
    assert store.shas() == tuple(sorted((needed, asked)))
    assert store.sweep(users, 20) == [asked]
    assert put(store, b"gone") == gone  # It may be uploaded again.


def test_an_upload_that_does_not_go_on_is_given_up(tmp_path: Path) -> None:
    """Its client may be gone; one that goes on slowly is left alone."""
    store = ArtifactStore(tmp_path / "artifacts", 10_000, grace_ms=10)
    slow, dead = sha_of(DATA), sha_of(b"dead")
    store.write(slow, offset=0, data=DATA[:100], last=False)
    store.write(dead, offset=0, data=b"d", last=False)

    assert store.sweep({}, 0) == []
    store.write(slow, offset=100, data=DATA[100:200], last=False)
    assert store.sweep({}, 10) == [dead]
    assert files_of(tmp_path) == [f"{slow}.partial"]
    assert store.write(slow, offset=200, data=DATA[200:], last=True)


def test_what_would_go_beyond_the_quota_is_refused(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts", 1000, quota_bytes=100)
    kept = put(store, b"x" * 60)
    store.sweep({kept: USER}, 0)
    store.write(sha_of(DATA), offset=0, data=DATA[:30], last=False)

    with pytest.raises(ConfigError, match=r"artifact.quota-bytes is 100 B.* \(orders\)"):
        put(store, b"y" * 11)
    assert put(store, b"y" * 10)
    with pytest.raises(ConfigError, match=r"artifact\.quota-bytes"):
        store.write(sha_of(DATA), offset=30, data=b"z", last=False)
    assert files_of(tmp_path) == sorted((kept, sha_of(b"y" * 10)))
    assert put(store, b"x" * 60) == kept  # What is there is no more.


def test_a_sweep_leaves_the_shared_folder_alone(tmp_path: Path) -> None:
    """Other clusters may need what is there; it is copied from there once more when asked for."""
    shared = LocalFolder(tmp_path / "shared")
    shared.make()
    store = ArtifactStore(tmp_path / "artifacts", 1000, shared, grace_ms=0)
    name = put(store, b"shared")

    assert store.sweep({}, 0) == [name]
    assert files_of(tmp_path) == []
    assert store.read(name, offset=0, count=10) == b"shared"


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_whatever_is_asked_for_meanwhile_nothing_needed_goes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = ArtifactStore(tmp_path_factory.mktemp("store"), 1000, grace_ms=3)
    files = [bytes([each]) for each in range(3)]
    for now_ms in range(10):
        each = data.draw(st.sampled_from(files))
        needed = {sha_of(one): USER for one in data.draw(st.sets(st.sampled_from(files)))}
        assert put(store, each) == sha_of(each)
        before = set(store.shas())
        gone = set(store.sweep(needed, now_ms))
        assert not gone & needed.keys()
        assert sha_of(each) not in gone
        assert set(store.shas()) == before - gone


def test_desk_says_which_program_is_missing(store: ArtifactStore) -> None:
    desk = ArtifactDesk(store)
    missing = Artifact(kind="stored", location=SHA)
    assert "has no artifact" in desk.why_not(missing)
    put(store, DATA)
    assert desk.why_not(missing) == ""
    assert desk.why_not(Artifact(kind="file", location="a.py")) == ""
