"""Files that are written first and seen later: moved to where readers look, once."""

from gearpy.errors import GearpyError
from gearpy.storage.folder.api import Folder


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
