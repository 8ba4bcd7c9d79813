"""Has processes speak the wire protocol of the version before alone.

`environment` returns what makes a process, and what it starts, do so: as far as others can tell
they are an older gearpy.
"""

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import force_setattr

from gearpy.messages.versions import PROTOCOL

#: What processes may be: ``child`` is an app master or executor.
ALL: Final = ("master", "worker", "child")
_ROLES: Final = "OLDER_PROCESSES"
_ROOT: Final = Path(__file__).parents[2]
_SITE: Final = """\
import sys

sys.path.insert(0, {root!r})
from tests.system.older_process import install

install()
"""


def environment(folder: Path, roles: Collection[str] = ALL) -> dict[str, str]:
    """Return the environment variables of such a process.

    Args:
        roles: of the processes that are older; what they start may be another.
    """
    folder.mkdir()
    site = folder / "sitecustomize.py"
    site.write_text(_SITE.format(root=str(_ROOT)), encoding="utf-8")
    return {_ROLES: ",".join(roles), "PYTHONPATH": str(folder)}


def install(environ: Mapping[str, str] = os.environ) -> None:
    """Forget the newest version, before anything is loaded that asks for it."""
    role = next((each for each in ("master", "worker") if each in sys.orig_argv), "child")
    if role in environ[_ROLES].split(","):
        force_setattr(PROTOCOL, "newest", PROTOCOL.newest - 1)
