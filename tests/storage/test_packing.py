"""The same files make the same archive; what is no part of a program is left out."""

import os
from pathlib import Path
from typing import Final

import pytest

from gearpy.errors import ConfigError
from gearpy.storage.archives import ArtifactLimits, unpack
from gearpy.storage.packing import files_in, pack
from tests.folders import write

LIMITS: Final = ArtifactLimits(bytes_max=10**6, unpacked_bytes_max=10**6, files_max=10)


def packed(folder: Path, target: Path) -> bytes:
    pack(files_in(folder, LIMITS), target, LIMITS)
    return target.read_bytes()


def test_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    files = {"b.py": "b", "a/__init__.py": "", "a/x.py": "x"}
    one = write(tmp_path / "one", files)
    other = write(tmp_path / "other", dict(reversed(files.items())))
    os.utime(other / "b.py", (1, 1))
    (other / "b.py").chmod(0o755)

    assert packed(one, tmp_path / "1.zip") == packed(other, tmp_path / "2.zip")


def test_what_was_packed_can_be_unpacked(tmp_path: Path) -> None:
    files = {"b.py": "b" * 1000, "a/__init__.py": "", "a/x.py": "x"}
    packed(write(tmp_path / "one", files), tmp_path / "1.zip")

    unpack(tmp_path / "1.zip", tmp_path / "two", "one.zip", LIMITS)

    assert {name: (tmp_path / "two" / name).read_text() for name in files} == files


def test_what_is_no_program_is_left_out(tmp_path: Path) -> None:
    names = ["app.py", "data.csv", "shop/app.py", ".env", ".git/config", "__pycache__/app.pyc"]
    names += ["shop/__pycache__/x.pyc", "old.pyc", "env/pyvenv.cfg", "env/lib/x.py"]
    folder = write(tmp_path / "one", dict.fromkeys(names, ""))

    assert list(files_in(folder, LIMITS)) == ["app.py", "data.csv", "shop/app.py"]


def test_a_link_to_a_file_is_the_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", {"app.py": "x"})
    (folder / "link.py").symlink_to(write(tmp_path, {"far.py": "far"}) / "far.py")

    packed(folder, tmp_path / "1.zip")
    unpack(tmp_path / "1.zip", tmp_path / "two", "one.zip", LIMITS)

    assert (tmp_path / "two/link.py").read_text() == "far"


def test_what_cannot_be_packed_is_told(tmp_path: Path) -> None:
    """Else the program would fail on the cluster, for want of it."""
    folder = write(tmp_path / "one", {"app.py": ""})
    (folder / "loop").symlink_to(folder)
    with pytest.raises(ConfigError, match="loop is a link to a folder"):
        files_in(folder, LIMITS)

    (folder / "loop").unlink()
    (folder / "broken").symlink_to(folder / "nothing")
    with pytest.raises(ConfigError, match="broken is no plain file"):
        files_in(folder, LIMITS)


def test_limits_hold_before_the_upload(tmp_path: Path) -> None:
    many = write(tmp_path / "many", {f"{number}.py": "" for number in range(11)})
    with pytest.raises(ConfigError, match="more than 10 files"):
        files_in(many, LIMITS)

    large = write(tmp_path / "large", {"a": "x" * 600_000, "b": "x" * 600_000})
    with pytest.raises(ConfigError, match="1200000 bytes, at most 1000000"):
        packed(large, tmp_path / "x.zip")
