"""The secret file, see `gearpy.transport.security.secret`."""

import stat
import threading
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.transport.security.secret import SECRET_BYTES, load_or_create_secret, write_private


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_process_creates_the_secret_for_its_user_only(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".gearpy" / "secret"

    secret = load_or_create_secret(file)

    assert len(secret) == SECRET_BYTES
    assert mode_of(file) == 0o600
    assert mode_of(file.parent) == mode_of(file.parent.parent) == 0o700
    assert file.read_text().strip() == secret.hex()


def test_later_processes_load_the_same_secret(tmp_path: Path) -> None:
    first = load_or_create_secret(tmp_path / "secret")

    assert load_or_create_secret(str(tmp_path / "secret")) == first
    assert load_or_create_secret(tmp_path / "other") != first


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    """A whole cluster on one machine starts at once; one wins, nobody sees half a file."""
    secrets: list[bytes] = []
    barrier = threading.Barrier(8)

    def load() -> None:
        barrier.wait()
        secrets.append(load_or_create_secret(tmp_path / "d" / "secret"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(secrets) == 8
    assert len(set(secrets)) == 1
    assert [one.name for one in (tmp_path / "d").iterdir()] == ["secret"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_file_open_to_others_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    load_or_create_secret(file)
    file.chmod(mode)

    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*chmod 600"):
        load_or_create_secret(file)


@pytest.mark.parametrize("content", ["", "short", "zz" * 32, "ab" * 31, "ab" * 33])
def test_a_file_without_a_secret_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    """It may be another file by mistake; a weak secret would be worse than none."""
    file = tmp_path / "secret"
    file.write_text(content)
    file.chmod(0o600)

    with pytest.raises(ConfigError, match="does not hold 32 bytes"):
        load_or_create_secret(file)

    assert file.read_text() == content


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"secret file .* cannot be (created|read)"):
        load_or_create_secret(tmp_path / "file" / "secret")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_or_create_secret(tmp_path)


def test_a_private_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    taken = tmp_path / "folder"
    (taken / "below").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_private(taken, b"1")
    assert list(tmp_path.iterdir()) == [taken]
    file = tmp_path / "new" / "file"
    for data, replaces in ((b"1", True), (b"2", True), (b"3", False)):
        write_private(file, data, replaces=replaces)
    assert file.read_bytes() == b"2"
    assert [mode_of(each) for each in (file.parent, file)] == [0o700, 0o600]
    assert list(file.parent.iterdir()) == [file]
