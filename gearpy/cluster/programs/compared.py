"""Two versions of a program, compared processor by processor.

A processor is the same if its parameters are, and the definitions in the files of the program that
its functions and classes come from. What comes from Python, gearpy or installed packages is the
same for both versions.
"""

from collections.abc import Sequence
from dataclasses import fields
from functools import _lru_cache_wrapper
from itertools import zip_longest
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Final

from gearpy.cluster.programs.sources import Definition, ProgramFiles, difference
from gearpy.ids import ProcessorId
from gearpy.task.api.application import Processor, StreamApplication
from gearpy.views.text import plural
from gearpy.wire.values.class_names import without_package

#: Parts of processors that say nothing of code: the graph tells them, and compares them itself.
_OF_GRAPH: Final = frozenset({"life", "parallelism", "steps"})
#: By these a step of the language has those before it, which are of other processors, too.
_BEFORE: Final = frozenset({"inputs", "origin"})
#: Stands before a number that says nothing to people.
_NUMBER: Final = "\0"
_ATOMS: Final = frozenset(
    {int, bool, float, complex, str, bytes, type(None), type(...), type(NotImplemented)}
)
_VALUES_MAX: Final = 300_000


class ComparedPrograms:
    """Tells whether processors do the same in both versions."""

    def __init__(self, old: StreamApplication, new: StreamApplication) -> None:
        self._old = old
        self._new = new
        self._files = ProgramFiles(old.folder), ProgramFiles(new.folder)

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
        try:
            setup = difference(*(each.settings for each in self._files))
            own = self._part_difference(old, new, _BEFORE)
            parts = own or self._part_difference(old, new, frozenset())
        except Exception as error:  # noqa: BLE001 - of user code: then nothing is known
            return f"it cannot be compared: {type(error).__name__}: {error}", True
        found = setup, number, parts
        return "; ".join(filter(None, found)), bool(setup or number or own)

    def _part_difference(self, old: ProcessorId, new: ProcessorId, but: frozenset[str]) -> str:
        one = _Parameters(self._old, self._files[0], old, but)
        other = _Parameters(self._new, self._files[1], new, but)
        reached = self._files[0].reached(one.entries), self._files[1].reached(other.entries)
        return difference(*reached) or _value_difference(one.told, other.told)


class _Parameters:
    """The parameters of a processor as texts, and the code among them as definitions.

    Objects are told as they would be stored. One that was met before is told by its number, so that
    what is one object does not equal two, and what holds itself ends.
    """

    def __init__(
        self,
        application: StreamApplication,
        files: ProgramFiles,
        pid: ProcessorId,
        but: frozenset[str],
    ) -> None:
        self.told: list[str] = []
        self.entries: list[Definition] = []
        self._files = files
        self._but = but
        self._met: dict[int, tuple[int, object]] = {}
        processor = application.processors[pid]
        mine = [
            getattr(processor, each.name)
            for each in fields(Processor)
            if each.name not in _OF_GRAPH
        ]
        targets = application.dag.downstream(pid)
        pending = [[application.name, mine, [application.partitioners[pid, to] for to in targets]]]
        while pending:
            pending += reversed(self._tell(pending.pop()))
            if len(self.told) > _VALUES_MAX:
                raise ValueError("there is too much")

    def _tell(self, value: Any) -> Sequence[Any]:
        if type(value) in _ATOMS:
            self.told.append(repr(value))
            return ()
        if id(value) in self._met:
            self.told.append(f"{_NUMBER}{self._met[id(value)][0]}")
            return ()
        self._met[id(value)] = len(self._met), value
        name, parts = self._parts(value)
        self.told.append(f"{name}{_NUMBER}{len(parts)}")
        return parts

    def _parts(self, value: Any) -> tuple[str, Sequence[Any]]:
        kind, name, parts = type(value), type(value).__name__, list[Any]()
        if isinstance(value, FunctionType):
            own = self._files.of_function(value.__code__, value.__qualname__)
            name = self._name(value.__qualname__, own, value.__code__)
            parts = [value.__defaults__, value.__kwdefaults__, value.__dict__]
            for cell in value.__closure__ or ():
                try:
                    parts.append(cell.cell_contents)
                except ValueError:  # It has not got its value yet.
                    parts.append(None)
        elif isinstance(value, type):
            own = self._files.of_module(value.__module__, value.__qualname__)
            name = f"{without_package(value.__module__)}.{value.__qualname__}"
            name = self._name(name, own, value)
        elif isinstance(value, ModuleType):
            own = self._files.of_module(value.__name__)
            name = self._name(without_package(value.__name__), own, value)
        elif kind in (list, tuple):
            parts = [*value]
        elif kind in (dict, MappingProxyType):
            parts = [each for pair in value.items() for each in pair]
        elif kind in (set, frozenset):
            parts = sorted(value, key=repr)
        elif isinstance(value, _lru_cache_wrapper):
            parts = [value.__wrapped__, value.cache_parameters()]
        elif (
            kind.__module__.startswith("gearpy.")
            and self._but & getattr(value, "__dict__", {}).keys()
        ):
            parts = [kind, {k: v for k, v in vars(value).items() if k not in self._but}]
        else:
            try:
                reduced = value.__reduce_ex__(4)
            except Exception:  # noqa: BLE001 - a lock, or code of users: it is only like itself
                reduced = self._name(name, [], value)
            if isinstance(reduced, str):
                name, parts = reduced, [kind]
            else:
                parts = [*reduced[:3], *map(list, filter(None, reduced[3:5]))]
        return name, parts

    def _name(self, name: str, own: list[Definition], known: object) -> str:
        self.entries += own
        return name if own else f"{name}{_NUMBER}{id(known)}"


def _value_difference(old: Sequence[str], new: Sequence[str]) -> str:
    for one, other in zip_longest(old, new, fillvalue=""):
        if one != other:
            was, now = (each.partition(_NUMBER)[0] for each in (one, other))
            if was == now or not (was and now):
                return f"in the step, {now or was or 'a parameter'} is another one"
            return f"in the step, {was:.80} has become {now:.80}"
    return ""
