"""The table of what stores promise, by which sinks and checkpoints know what is exact on them."""

from typing import Final, Literal, NamedTuple

#: How a file gets another name: in one step; as a copy that is seen when it is whole, after which
#: the old file goes; or some other way.
Moving = Literal["one step", "whole copy", "not known"]


class StorePromises(NamedTuple):
    """The promises of a store.

    Attributes:
        replaces: whether a move puts the file in place of another, without a moment of none.
        puts_new: whether of two who put a file of one name at once, one is told that it was late.
        lists_new: whether a listing has every file that was complete before it.
        puts_whole: whether a file that is being put is seen only when it is whole.
        confirms: whether a file that was put without an error is there; else it is looked for.
    """

    moves: Moving
    replaces: bool
    puts_new: bool
    lists_new: bool
    puts_whole: bool
    confirms: bool = False

    @property
    def shows_once(self) -> bool:
        """Whether a sink that moves its files when their epoch is complete shows each once."""
        return self.moves != "not known" and self.lists_new

    @property
    def keeps_checkpoints(self) -> bool:
        return (self.puts_whole or self.moves != "not known") and self.lists_new


ON_DISK: Final = StorePromises("one step", True, True, True, False)
_OBJECTS: Final = StorePromises("whole copy", True, True, True, True)
_OBJECTS_WITHOUT_CONDITIONS: Final = StorePromises("whole copy", True, False, True, True)
_WEB_HDFS: Final = StorePromises("one step", True, True, True, False)
#: The client never replaces: a file is removed before the one that takes its place is moved.
_LIB_HDFS: Final = StorePromises("one step", False, False, True, False)
_PROCESS_MEMORY: Final = StorePromises("whole copy", True, False, True, False)
#: Files have no other names; for checkpoints and logs only.
_TOPICS: Final = StorePromises("not known", False, False, True, True, confirms=True)
UNKNOWN: Final = StorePromises("not known", False, False, False, False)

#: The keys are schemes of URLs, as fsspec knows them.
PROMISES: Final[dict[str, StorePromises]] = {
    "s3": _OBJECTS,
    "s3a": _OBJECTS,
    "gs": _OBJECTS,
    "gcs": _OBJECTS,
    "abfs": _OBJECTS,
    "abfss": _OBJECTS,
    "az": _OBJECTS,
    "oci": _OBJECTS_WITHOUT_CONDITIONS,
    "oss": _OBJECTS_WITHOUT_CONDITIONS,
    "tos": _OBJECTS_WITHOUT_CONDITIONS,
    "webhdfs": _WEB_HDFS,
    "hdfs": _LIB_HDFS,
    "kafka": _TOPICS,
    "memory": _PROCESS_MEMORY,
}


def promises_of(schemes: str | tuple[str, ...]) -> StorePromises:
    names = (schemes,) if isinstance(schemes, str) else schemes
    return next((PROMISES[name] for name in names if name in PROMISES), UNKNOWN)
