"""Ids of steps, which stay the same while a program changes around them; functions of the plan.

A name that was given is the id. Any other step has one that is derived from what the step is and
from which sources and grouping steps its records come; of steps that are alike in that, the first
in the program has the number 1. Steps that keep nothing and pass records on, such as `map`, do not
count on that way: to add one, or to take one away, leaves the ids behind it as they are.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.routes import SideOperator, maker_of
from gearpy.errors import ConfigError

_DIGEST_CHARS: Final = 8
_CHARS_MAX: Final = 60
#: A text that can be part of the name of a state as it is.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. ()<>=,:+*/-]*")


def operator_ids(steps: Sequence[Operator]) -> dict[Operator, str]:
    given = Counter(step.given for step in steps if step.given)
    twice = [
        f"{count} steps have the name {name!r}: what they keep is found by it, "
        "so give each a name of its own"
        for name, count in given.items()
        if count > 1
    ]
    if twice:
        raise ConfigError(*twice)
    taken = {_of_name(step.given) for step in steps if step.given}
    ids: dict[Operator, str] = {}
    from_: dict[Operator, str] = {}  # The origin of the records of a step, as text.
    times: Counter[str] = Counter()
    for step in steps:
        if step.given:
            ids[step] = _of_name(step.given)
        else:
            text = "\n".join((step.kind, step.structure, *_origins(step, from_)))
            derived = f"{step.kind}-{sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]}"
            name = ""
            while not name or name in taken:
                times[derived] += 1
                name = derived if times[derived] == 1 else f"{derived}-{times[derived]}"
            ids[step] = name
        from_[step] = ids[step] if step.keeps else " ".join(sorted(set(_origins(step, from_))))
    return ids


def step_ids(placed: Sequence[Operator], ids: Mapping[Operator, str]) -> dict[Operator, str]:
    """Return the id of each step of the plan that runs; the parts of one begin with its id."""
    found: dict[Operator, str] = {}
    times: Counter[str] = Counter()
    for step in placed:
        if step in ids:
            name = ids[step]
        elif step.origin is None:  # A conversion.
            (source,) = step.inputs
            name = f"{found[maker_of(source)]}.{step.kind}"
        else:
            name = ids[step.origin] + (f".{step.part}" if step.part else "")
        times[name] += 1
        found[step] = name if times[name] == 1 else f"{name}-{times[name]}"
    return found


def _origins(step: Operator, from_: Mapping[Operator, str]) -> list[str]:
    found = [
        f"{from_[maker_of(source)]}@{source.tag}"
        if isinstance(source, SideOperator)
        else from_[source]
        for source in step.inputs
    ]
    return found if step.keeps else sorted(found)


def _of_name(given: str) -> str:
    if len(given) <= _CHARS_MAX and _PLAIN.fullmatch(given):
        return given
    return f"name-{sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
