"""The steps that a folder of files is written and read in.

The content of a file is durable after `Folder.sync`, and its name after `Folder.sync_names`; before
that, a power cut may undo all, a part, or nothing of it.
"""

from collections.abc import Callable, Iterable
from typing import BinaryIO, Final, NamedTuple, Protocol

from gearpy.errors import GearpyError
from gearpy.storage.folder.promises import StorePromises

#: Ends the name of a file that is not complete yet.
TEMPORARY: Final = ".tmp"


class FileFacts(NamedTuple):
    """Size of a file in bytes, and the time of its last change; 0 if nobody knows."""

    size: int
    changed_ms: int


def any_folder(_: str) -> bool:
    return True


def parent_of(name: str) -> str:
    return name.rpartition("/")[0]


class Folder(Protocol):
    """A folder of files, and of folders in it.

    Names are relative to it, with slashes. Each step may raise `OSError`; then nobody knows how
    much of it was done.

    Runs on: one thread at a time; others may be at the same folder.
    """

    @property
    def place(self) -> str:
        """The folder, for people."""
        ...

    @property
    def promises(self) -> StorePromises:
        """The promises of the store that it is in."""
        ...

    def make(self, *folders: str) -> None:
        """Make the folder and some in it, durably, unless they are there."""
        ...

    def hold(self, folder: str) -> None:
        """Have no step but `make` make this folder, or those above it, and none prune them.

        Only on a disk; elsewhere there are no folders without files.
        """
        ...

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in the folder, or in one of its folders; in no order."""
        ...

    def walk(self, folder: str = "", into: Callable[[str], bool] = any_folder) -> list[str]:
        """Return the paths of all files below a folder, at any depth; in no order.

        Args:
            folder: where to begin; a file has nothing below it.
            into: tells of the name of a folder whether to look into it.
        """
        ...

    def location(self, name: str) -> str:
        """Return the path or URL of a file, for other programs."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it, in any order.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """Return a whole file; None if there is none."""
        ...

    def look(self, name: str) -> FileFacts | None:
        """Return size and time of a file; None if there is none."""
        ...

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file, durably, in place of the one that has the name.

        Nobody sees a part of it. If the chunks break off, nothing has changed.
        """
        ...

    def put(self, name: str, data: bytes) -> None:
        """Do the same with a small file."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Do the same, but only if there is no file of the name; False if there is one."""
        ...

    def create(self, name: str) -> BinaryIO:
        """Begin a file.

        Raises:
            FileExistsError: there is one of this name, on a disk.
        """
        ...

    def sync(self, file: BinaryIO) -> None:
        """Make the written bytes of a begun file durable."""
        ...

    def move(self, name: str, *, to: str) -> bool:
        """Give a complete file another name, in place of the one that has it.

        Returns False if there is no such file.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def remove_tree(self, name: str) -> None:
        """Remove a file, or a folder with all that is below it, if it is there."""
        ...

    def prune(self, folder: str) -> None:
        """Remove a folder in this one, and those above it, as long as they are empty."""
        ...

    def sync_names(self, folder: str = "") -> None:
        """Make durable which files there are in a folder."""
        ...

    def sync_tree(self, into: Callable[[str], bool]) -> None:
        """Make durable which files there are, also in the folders that `walk` would look into."""
        ...


class LogFolder(Folder, Protocol):
    """A folder whose files can grow, and that one process can have for itself."""

    def lock(self) -> None:
        """Keep all others out, also other processes.

        Raises:
            ConfigError: another has it.
        """
        ...

    def unlock(self) -> None:
        """Let others in, and hold no file open."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, which is made if there is none; make its content durable."""
        ...

    def note(self, name: str, data: bytes) -> None:
        """Add to the end of a file, but leave it to the system when that is durable."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the end of a file off."""
        ...


def is_whole(folder: Folder, name: str, *, written: int, who: str) -> bool:
    """Tell whether a file that was prepared is there."""
    found = folder.look(name)
    if found is not None and found.size != written:
        raise GearpyError(
            f"{who}: {name} in {folder.place} has {found.size} bytes, {written} were written: it "
            "was changed or is damaged"
        )
    return found is not None


def reveal(folder: Folder, pending: str, *, to: str, written: int, who: str) -> bool:
    """Let readers see a prepared file, unless they do; False: it is in neither place."""
    is_whole(folder, pending, written=written, who=who)
    return folder.move(pending, to=to) or folder.look(to) is not None
