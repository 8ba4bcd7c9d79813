"""Functions of SQL that are written in SQL: their names, parameters, and what stands for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_TEXT: Final = """
if iff iif(c, a, b) := case when c then a else b end
nullif(a, b) := case when a = b then null else a end
ifnull nvl(a, b) := coalesce(a, b)
nvl2(x, a, b) := case when x is null then b else a end
zeroifnull(x) := coalesce(x, 0)

sign(x) := case when x > 0 then 1 when x < 0 then -1 when x = 0 then 0 end
trunc(x) := case when x < 0 then ceil(x) else floor(x) end
pi() := 3.141592653589793
degrees(x) := x * 57.29577951308232
radians(x) := x * 0.017453292519943295
isnan(x) := x <> x
isinf(x) := abs(x) = cast('inf' as double)
isfinite(x) := abs(x) < cast('inf' as double)
geomean(x) := exp(avg(ln(x)))

dayname(x) := strftime(x, '%A')
monthname(x) := strftime(x, '%B')
date to_date(x) := cast(x as date)
last_day(x) := cast(date_trunc('month', x) + interval '1 month' as date) - 1
make_date(y, m, d) :=
    cast(lpad(y, 4, '0') || '-' || lpad(m, 2, '0') || '-' || lpad(d, 2, '0') as date)
date_add(x, i) := x + i
to_weeks(x) := x * interval '1 week'
to_days(x) := x * interval '1 day'
to_hours(x) := x * interval '1 hour'
to_minutes(x) := x * interval '1 minute'
to_seconds(x) := x * interval '1 second'
to_milliseconds(x) := x * interval '1 ms'

list_first array_first(l) := l[1]
list_last array_last(l) := l[-1]
list_extract array_extract element_at(l, n) := l[n]
struct_extract(s, f) := s[f]
list_position array_position(l, x) := nullif(list_find(l, x) + 1, 0)
string_agg group_concat listagg(x, sep = ',') :=
    case when count(x) > 0 then array_to_string(list(x), sep) end
"""


_MACRO: Final = r"^(\S.*?)\((.*?)\) :=(.*(?:\n    .*)*)"


class Macro(NamedTuple):
    """What stands for a function: an expression with the names of its parameters.

    Attributes:
        defaults: of the last parameters.
    """

    parameters: tuple[str, ...]
    defaults: tuple[str, ...]
    body: str


def _macros() -> Mapping[str, Macro]:
    found: dict[str, Macro] = {}
    for names, listed, body in re.findall(_MACRO, _TEXT, re.MULTILINE):
        pairs = [each.partition(" = ") for each in listed.split(", ") if each]
        defaults = tuple(default for _, _, default in pairs if default)
        macro = Macro(tuple(name for name, _, _ in pairs), defaults, body)
        found |= dict.fromkeys(names.split(), macro)
    return found


MACROS: Final = _macros()
#: Aggregates in macros, which have the DISTINCT, FILTER, ORDER BY and OVER of the call.
IN_MACROS: Final = frozenset({"avg", "count", "list"})
