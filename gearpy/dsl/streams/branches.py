"""A stream taken apart by predicates: each record goes into one of several streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic

from gearpy.dsl.operators.names import check_function, check_name
from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.routes import BranchOperator, SideOperator
from gearpy.dsl.streams.program import Program
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import T

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream


class Branches(Generic[T]):
    """The streams that `Stream.branch` makes, by name: ``branches.big`` or ``branches["big"]``."""

    def __init__(self, streams: Mapping[str, Stream[T]]) -> None:
        self._streams = dict(streams)

    def __getitem__(self, name: str) -> Stream[T]:
        if name not in self._streams:
            names = ", ".join(self._streams)
            raise ConfigError(f"there is no branch {name!r}: there are {names}")
        return self._streams[name]

    def __getattr__(self, name: str) -> Stream[T]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)


def branches(
    program: Program,
    step: Operator,
    predicates: Mapping[str, Callable[[Any], object]],
    *,
    default: str | None,
    kind: str,
    shown: str,
    name: str,
) -> Branches[Any]:
    """Add the step that takes a stream apart.

    Raises:
        ConfigError: there is no predicate, one is no function, or two streams have one name.
    """
    if not predicates:
        raise ConfigError(f"{kind} has no predicates: write {kind}(big=lambda n: n > 100)")
    for tag, predicate in predicates.items():
        check_function(f"{kind}: {tag}", predicate)
    if default is not None:
        check_name(kind, "default", default, but=predicates.keys())
    step = BranchOperator(
        name=name or shown,
        given=name,
        kind=kind,
        inputs=(step,),
        predicates=dict(predicates),
        default=default,
    )
    program.add(step)
    tags = [*predicates, *([default] if default is not None else [])]
    return Branches(
        {tag: program.stream(SideOperator(name=tag, inputs=(step,), tag=tag)) for tag in tags}
    )
