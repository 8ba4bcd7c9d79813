"""The files that all masters have on their disks, as each tells it itself."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from msgspec.structs import replace

from gearpy.errors import GearpyError
from gearpy.messages.masters import GetMasterDisk, MasterDisk, MasterList, MasterSummary

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
