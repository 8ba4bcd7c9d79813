"""The promises of an application from each source to each sink, and the weakest links.

A path is as good as its parts let it be: the source must be read again from where an epoch ended,
each task must go on from its state then, and the sink must show the records of the epoch once.
Parts tell what they do by what they declare; of a task nothing is known but its class.
"""

import dis
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, Final, get_type_hints

from msgspec import Struct

from gearpy.ids import ProcessorId
from gearpy.task.api.application import Processor, StreamApplication
from gearpy.task.api.interfaces import Sink, Task
from gearpy.task.chain.chain import ChainTask

_SHOWN_MAX: Final = 5
_STORES: Final = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL"})
_MUTABLE: Final = (dict, list, set, bytearray)


class Guarantee(Enum):
    """The promise of a path while processes, machines and networks fail; the weakest first."""

    NONE = "none"
    NOT_KNOWN = "not known"
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EFFECTIVELY_ONCE = "effectively-once"
    EXACTLY_ONCE = "exactly-once"


class Effect(Enum):
    """The harm that a failure may do to the records of a path, at one of its parts."""

    LOSES = "loses"  #: Records do not come again.
    REPEATS = "repeats"  #: Records come again where they were seen before.
    REWRITES = "rewrites"  #: They do, with the same result in the end.
    UNKNOWN = "unknown"


class Weakness(Struct, frozen=True):
    """A part of a path that keeps it from being exactly-once: name, effect, reason and remedy."""

    part: str
    effect: Effect
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.part} {self.reason}; {self.fix}"


class PathGuarantee(Struct, frozen=True):
    """The promise from one source to one sink."""

    source: str
    sink: str
    weaknesses: tuple[Weakness, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        effects = {each.effect for each in self.weaknesses}
        if {Effect.LOSES, Effect.REPEATS} <= effects:
            return Guarantee.NONE
        for effect, guarantee in _LEFT.items():
            if effect in effects:
                return guarantee
        return Guarantee.EXACTLY_ONCE

    @property
    def weakest(self) -> Weakness | None:
        order = list(_LEFT)
        return min(self.weaknesses, key=lambda each: order.index(each.effect), default=None)


#: The guarantee of a path with an effect, if it has none of the effects before.
_LEFT: Final = {
    Effect.UNKNOWN: Guarantee.NOT_KNOWN,
    Effect.LOSES: Guarantee.AT_MOST_ONCE,
    Effect.REPEATS: Guarantee.AT_LEAST_ONCE,
    Effect.REWRITES: Guarantee.EFFECTIVELY_ONCE,
}


def guarantees_of(application: StreamApplication) -> list[PathGuarantee]:
    """Return the promise from each source to each sink that it leads to, in order."""
    processors = application.processors
    targets: dict[ProcessorId, list[ProcessorId]] = {pid: [] for pid in processors}
    sources: dict[ProcessorId, list[ProcessorId]] = {pid: [] for pid in processors}
    for edge in application.dag.edges:
        targets[edge.source].append(edge.target)
        sources[edge.target].append(edge.source)
    heads = [pid for pid in application.dag.order if not sources[pid]]
    ends = [pid for pid in application.dag.order if _is_end(processors[pid], targets[pid])]
    behind = {pid: _reached(pid, targets) for pid in heads}
    before = {pid: _reached(pid, sources) for pid in ends}
    return [
        _path([processors[pid] for pid in application.dag.order if pid in behind[a] & before[b]])
        for a in heads
        for b in ends
        if b in behind[a]
    ]


def guarantee_lines(paths: Iterable[PathGuarantee]) -> Iterator[str]:
    """Yield one line if all is exactly-once, else the weaknesses and the paths that have them."""
    paths = list(paths)
    weak: dict[tuple[Guarantee, Weakness], list[PathGuarantee]] = {}
    for path in paths:
        if path.weakest is not None:
            weak.setdefault((path.guarantee, path.weakest), []).append(path)
    if paths and not weak:
        yield Guarantee.EXACTLY_ONCE.value
    order = list(Guarantee)
    for guarantee, weakness in sorted(weak, key=lambda each: order.index(each[0]))[:_SHOWN_MAX]:
        count = len(weak[guarantee, weakness])
        of_all = "" if count == len(paths) else f" on {count} of {len(paths)} paths"
        yield f"{guarantee.value}{of_all}: {weakness}"
    if len(weak) > _SHOWN_MAX:
        yield f"and {len(weak) - _SHOWN_MAX} more weak links"


def short_guarantee(paths: Iterable[PathGuarantee]) -> str:
    """Return the weakest promise of all paths in a few words, with the part that it is due to."""
    order = list(Guarantee)
    weakest = min(paths, key=lambda each: order.index(each.guarantee), default=None)
    if weakest is None:
        return Guarantee.NONE.value
    part = "" if weakest.weakest is None else f" ({weakest.weakest.part}; see gear plan)"
    return f"{weakest.guarantee.value}{part}"


def cannot_be_resumed(application: StreamApplication) -> str | None:
    """Return a warning for a run without a folder to resume it from.

    None where it does not matter: its input has an end, or cannot be read again anyway.
    """
    sources = [each.source for each in application.processors.values() if each.source is not None]
    if not any(source.replayable and not source.bounded for source in sources):
        return None
    return (
        f"{application.name} cannot be resumed when it has ended: for that, begin it with --resume "
        "NAME, or gp.run(app, checkpoint=FOLDER)"
    )


# -- the graph -------------------------------------------------------------------------------


def _is_end(processor: Processor, targets: list[ProcessorId]) -> bool:
    if processor.sink is not None:
        return True
    made = _task_class(processor)
    return not targets and not (made is not None and issubclass(made, ChainTask))


def _reached(
    start: ProcessorId, ways: Mapping[ProcessorId, list[ProcessorId]]
) -> frozenset[ProcessorId]:
    found, waiting = {start}, [start]
    while waiting:
        new = [pid for pid in ways[waiting.pop()] if pid not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


def _path(parts: list[Processor]) -> PathGuarantee:
    head, end = parts[0], parts[-1]
    source, sink = head.source, end.sink
    weaknesses = [weakness for part in parts for weakness in _of_task(part, is_head=part is head)]
    if source is not None and not source.replayable:
        lost = Weakness(
            source.description,
            Effect.LOSES,
            "cannot be read again: a failure loses what it gave since the newest epoch",
            "read what keeps its records, such as files",
        )
        weaknesses.insert(0, lost)
    if sink is None:
        unknown = Weakness(
            end.name,
            Effect.UNKNOWN,
            "is a task of your own at the end: what it does with records is not known",
            "let it send results to a sink",
        )
        weaknesses.append(unknown)
    else:
        weaknesses += _of_sink(sink)
    return PathGuarantee(
        source=head.name if source is None else source.description,
        sink=end.name if sink is None else sink.description,
        weaknesses=tuple(dict.fromkeys(weaknesses)),
    )


# -- the parts -------------------------------------------------------------------------------


def _of_task(processor: Processor, *, is_head: bool) -> Iterator[Weakness]:
    made = _task_class(processor)
    if made is None:
        yield Weakness(
            processor.name,
            Effect.UNKNOWN,
            "is made by a function that does not say which Task",
            "annotate what it returns",
        )
    elif (made.snapshot is not Task.snapshot) or any(
        "state" in code.co_names for code in _codes(made)
    ):
        return
    elif is_head and processor.source is None:
        yield Weakness(
            processor.name,
            Effect.UNKNOWN,
            "begins anew after a failure, as it has no snapshot",
            "override Task.snapshot and go on from context.resume",
        )
    elif _may_keep(made):
        yield Weakness(
            processor.name,
            Effect.UNKNOWN,
            "has no snapshot: what it keeps between records is gone after a failure",
            "override Task.snapshot and go on from context.resume, or use context.state",
        )


def _of_sink(sink: Sink) -> Iterator[Weakness]:
    if sink.transactional and sink.repeats:
        yield Weakness(
            sink.description,
            Effect.REPEATS,
            f"sends again after a failure what it was sending, with {sink.repeats}",
            "let the receiver leave out what it has had",
        )
    elif sink.transactional:
        return
    elif sink.idempotent:
        yield Weakness(
            sink.description,
            Effect.REWRITES,
            "is given records again after a failure, and writes the same again",
            "that is all right if its readers do not mind",
        )
    elif sink.takes_back:
        yield Weakness(
            sink.description,
            Effect.REWRITES,
            "takes back after a failure what it wrote since the newest epoch, and writes it again",
            "read it when the application has ended, or write to jsonl_folder or parquet_folder",
        )
    else:
        yield Weakness(
            sink.description,
            Effect.REPEATS,
            "writes again after a failure what it wrote since the newest epoch",
            "write to a transactional sink, such as jsonl_folder or parquet_folder",
        )


# -- the answers of a class ------------------------------------------------------------------


def _task_class(processor: Processor) -> type[Task] | None:
    made: Any = processor.task
    if not isinstance(made, type):
        try:
            made = get_type_hints(made).get("return")
        except (TypeError, NameError, AttributeError):
            return None
    is_known = isinstance(made, type) and issubclass(made, Task) and made is not Task
    return made if is_known else None


def _may_keep(made: type[Task]) -> bool:
    own = [value for klass in _own_classes(made) for value in vars(klass).values()]
    if any(isinstance(value, _MUTABLE) for value in own):
        return True
    return any(
        step.opname in _STORES or step.argval == "setattr"
        for code in _codes(made)
        for step in dis.get_instructions(code)
    )


def _own_classes(made: type[Task]) -> list[type]:
    return [klass for klass in made.__mro__ if klass not in Task.__mro__]


def _codes(made: type[Task]) -> Iterator[CodeType]:
    waiting = [
        function.__code__
        for klass in _own_classes(made)
        for value in vars(klass).values()
        for function in (getattr(value, "fget", value), getattr(value, "__func__", None))
        if isinstance(function, FunctionType)
    ]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
