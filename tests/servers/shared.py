"""One server for all processes of a test run."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.servers.recipes import Unavailable, locked


def shared(folder: Path, name: str, start: Callable[[Path], dict[str, str]]) -> dict[str, str]:
    """Return the addresses of a server; the first process that asks starts it.

    It ends when the test run ends.

    Args:
        start: starts it in an empty folder and returns its addresses.
    """
    told = folder / f"{name}.json"
    with locked(folder / f"{name}.lock"):
        if not told.exists():
            own = folder / name
            own.mkdir()
            told.write_text(json.dumps(_started(own, start)))
    answer: dict[str, str] = json.loads(told.read_text())
    if why := answer.get("unavailable"):
        raise Unavailable(why)
    return answer


def _started(folder: Path, start: Callable[[Path], dict[str, str]]) -> dict[str, str]:
    try:
        return start(folder)
    except Unavailable as error:
        return {"unavailable": str(error)}
