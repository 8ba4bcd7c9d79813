"""The folders of masters, by name: one that has lost its folder must not speak for the old one."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from gearpy.errors import ConfigError, GearpyError, LogDamaged
from gearpy.messages.masters import GetMasterDisk, MasterDisk, MasterList, MasterSummary
from gearpy.storage.folder.api import LogFolder

_OWN: Final = "disk"
_KNOWN: Final = "disks"
_NAME_BYTES: Final = 8


class DiskBook:
    """Knows the name of this master's folder, and those of the others since each spoke first.

    What a master has promised is in its folder. A master that comes back with an empty one has
    forgotten it, could vote or promise otherwise, and is not listened to.

    Runs on: one thread at a time. Restart: what was noted is there.
    """

    def __init__(self, folder: LogFolder, *, is_new: bool) -> None:
        self._folder = folder
        own = folder.read(_OWN)
        if own is None:
            if not is_new:
                path = f"{folder.place}/{_OWN}"
                raise LogDamaged(file=path, offset=0, reason="the file is missing")
            own = secrets.token_hex(_NAME_BYTES).encode()
            folder.put(_OWN, own)
        self.own = own.decode()  #: The name of this one.
        self._known: dict[str, str] = msgspec.json.decode(
            folder.read(_KNOWN) or b"{}", type=dict[str, str]
        )

    def admits(self, member: str, disk: str) -> bool:
        """Tell whether a master speaks from the folder that it had when it spoke first."""
        known = self._known.get(member)
        if known is None:
            self._known[member] = disk
            self._folder.put(_KNOWN, msgspec.json.encode(self._known))
            return True
        return known == disk


def refusal_of(member: str, by: str) -> ConfigError:
    return ConfigError(
        f"master {member} comes with another master.folder than it had, as master {by} knows: what "
        "it has promised is not in it. Start it over the old folder; or, if that is lost, take it "
        f"out with 'gear master remove {member}', and add one with another address"
    )


#: Asks a master, by its address; raises `GearpyError` when there is no answer.
AskMember: TypeAlias = Callable[[str, Any], Any]


class MemberDisks:
    """Asks the masters about their disks; a master that is away, or does not tell, has none.

    Runs on: any thread; blocks until all have answered, or their time is over.
    """

    def __init__(self, own: Callable[[], MasterDisk], ask: AskMember) -> None:
        self.own = own  #: See above.
        self._ask = ask

    def added(self, found: MasterList) -> MasterList:
        with ThreadPoolExecutor(max_workers=len(found.masters)) as threads:
            return replace(found, masters=tuple(threads.map(self._with_disk, found.masters)))

    def _with_disk(self, master: MasterSummary) -> MasterSummary:
        if master.leads:
            return replace(master, disk=self.own())
        if master.role == "away":
            return master
        try:
            answer = self._ask(master.address, GetMasterDisk())
        except (GearpyError, OSError):
            return master
        return replace(master, disk=answer) if isinstance(answer, MasterDisk) else master
