"""Which tests one process runs one after the other, and which of them come first."""

from typing import Final

#: Rooms whose tests share a server or a JVM; elsewhere, only tests of a file share anything.
_TOGETHER: Final = ("tests/services/page/", "tests/services/", "tests/spark/")
#: What is in such a room, but has processes of its own, or none.
_APART: Final = (
    *("tests/spark/test_without_java.py", "tests/spark/guest/test_tie.py"),
    *("tests/spark/delivery/", "tests/spark/query/", "tests/spark/source/"),
)
#: What takes longest comes first: what comes last ends the run, the shorter the better.
_ORDER: Final = (
    *_TOGETHER,
    *(f"tests/{room}/" for room in ("docs", "system", "sim", "cluster", "cli", "examples")),
)


def group(nodeid: str) -> str:
    """Name the tests that one process runs one after the other: of a file, or a room."""
    file = nodeid.partition("::")[0]
    if file.startswith(_APART):
        return file
    return next((room for room in _TOGETHER if file.startswith(room)), file)


def place(nodeid: str) -> int:
    name = group(nodeid)
    places = [place for place, start in enumerate(_ORDER) if name.startswith(start)]
    return min(places, default=len(_ORDER))
