"""Two versions of a program, compared processor by processor."""

from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Final

from gearpy.cluster.programs.same_code import difference
from gearpy.cluster.programs.setup_code import setup_of
from gearpy.ids import ProcessorId
from gearpy.task.api.application import Processor, StreamApplication
from gearpy.views.text import plural

#: Parts of processors that say nothing of code: the graph tells them, and compares them itself.
_OF_GRAPH: Final = frozenset({"life", "parallelism", "steps"})
#: By these a step of the language has those before it, which are of other processors, too.
_BEFORE: Final = frozenset({"inputs", "origin"})


class ComparedPrograms:
    """Tells whether processors do the same in both versions.

    Args:
        old, new: both are loaded in this process.
    """

    def __init__(self, old: StreamApplication, new: StreamApplication) -> None:
        self._old = old
        self._new = new

    def difference(self, old: ProcessorId, new: ProcessorId) -> str:
        """Return all ways in which a processor of the old one differs from one of the new one.

        Empty if both do the same.
        """
        return self.compare(old, new)[0]

    def compare(self, old: ProcessorId, new: ProcessorId) -> tuple[str, bool]:
        """Return the same, and whether the processor itself is another one.

        Else the difference is in one that comes before it.
        """
        if old not in self._old.processors or new not in self._new.processors:
            return "it is only in one of them", True
        before, now = self._old.processors[old].parallelism, self._new.processors[new].parallelism
        number = "" if before == now else f"it has {plural(now, 'task')} now, and had {before}"
        parts = _parts(self._old, old), _parts(self._new, new)
        own = difference(*parts, but=_BEFORE)
        found = self._setup, number, own or difference(*parts)
        return "; ".join(filter(None, found)), bool(self._setup or number or own)

    @cached_property
    def _setup(self) -> str:
        """The difference of what files set for all code of a program; empty if there is none."""
        if self._old.folder == self._new.folder:  # Objects of this process have none.
            return ""
        if not (self._old.folder and self._new.folder):
            return "only one of them was uploaded"
        try:
            is_same = _setups(self._old) == _setups(self._new)
        except (OSError, SyntaxError, ValueError) as error:
            return f"a file of it cannot be read: {error}"
        return "" if is_same else "what is set for all of the program"


def _setups(application: StreamApplication) -> list[list[str]]:
    """Return the settings that files make, without their names: that of a program may differ."""
    return sorted(filter(None, setup_of(Path(application.folder)).values()))


def _parts(application: StreamApplication, pid: ProcessorId) -> list[object]:
    """Return the code and the parameters of a processor, and how its output is spread."""
    processor = application.processors[pid]
    mine = [
        getattr(processor, each.name) for each in fields(Processor) if each.name not in _OF_GRAPH
    ]
    edges = [application.partitioners[pid, target] for target in application.dag.downstream(pid)]
    return [application.name, mine, edges]
