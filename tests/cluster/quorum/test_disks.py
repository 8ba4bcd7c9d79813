"""Folders of masters, which must not be exchanged."""

import pytest

from gearpy.cluster.quorum.disks import DiskBook, refusal_of
from gearpy.errors import LogDamaged
from gearpy.storage.folder.memory import MemoryFolder


def test_a_master_with_another_folder_is_not_listened_to() -> None:
    folder = MemoryFolder()
    book = DiskBook(folder, is_new=True)

    assert book.admits("a", "first")
    folder.crash(None)
    again = DiskBook(folder, is_new=False)

    assert again.own == book.own
    assert again.admits("a", "first")
    assert not again.admits("a", "second")
    assert again.admits("b", "second")
    assert "gear master remove a" in str(refusal_of("a", "b"))


def test_a_folder_that_has_lost_its_name_is_damaged() -> None:
    """It would get a new one, and the others would not listen."""
    with pytest.raises(LogDamaged, match="disk"):
        DiskBook(MemoryFolder(), is_new=False)
