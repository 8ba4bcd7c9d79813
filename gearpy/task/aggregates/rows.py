"""Aggregates over rows: one generated loop for all aggregates of a step.

Generated as Python source and compiled once for a step, so that a record costs one look-up of its
key and a few bytecodes for each aggregate. The value of a key is a tuple, one accumulator for
each aggregate; a record's values are all taken and checked before anything changes, so that a
record on which something raises changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from keyword import iskeyword
from operator import length_hint
from typing import Any, Final, NamedTuple, TypeAlias

from gearpy.core.base.copies import ATOMS, own
from gearpy.core.base.fields import (
    WITH_ATTRIBUTES,
    Field,
    FieldGetter,
    FieldsGetter,
    compiled,
    indented,
    value_getter,
)
from gearpy.core.base.one_key import ORDERED_BY_ZONE, PLAIN, one_if_key, one_key
from gearpy.core.window.accumulators import Aggregate, check_aggregates, itself
from gearpy.messages.data import Batch
from gearpy.task.aggregates.fold import (
    Fold,
    FoldLoop,
    KeyFunction,
    RunningLoop,
    RunningStage,
    without,
)
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import TaskContext

#: Named ones, whose results are a dict; or one alone.
Aggregates: TypeAlias = Mapping[str, Aggregate] | Aggregate
#: Aggregates of one window whose value tells in which order records came.
OF_ORDER: Final = frozenset({"collect", "custom", "heavy_hitters"})
#: Aggregates whose accumulators grow in place, as lists, sets and dicts do.
_GROWING: Final = frozenset(
    {"collect", "distinct", "custom", "quantile", "approx_distinct", "mode", "heavy_hitters"}
)
#: Times are compared by their instants.
_INSTANT: Final = "if {c} in zoned: {x} = alike({x})"
#: How an aggregate takes a value ``{x}`` of type ``{c}`` into its accumulator ``{s}``. Of the rest,
#: its own function does it.
_STEPS: Final[dict[str, tuple[str, ...]]] = {
    "count": ("{s} += 1",),
    "sum": (
        "if {c} is int or {c} is float: {s} = {x} if {s} is None else {s} + {x}",
        "elif {c} is bool: {s} = ({s} or 0) + {x}",
        "elif {x} is not None: {s} = {add}({s}, {x})",
    ),
    "min": (
        _INSTANT,
        "if {x} is not None and ({s} is None or {x} < {s} or {s} != {s}): {s} = {x}",
    ),
    "max": (
        _INSTANT,
        "if {x} is not None and ({s} is None or {x} > {s} or {s} != {s}): {s} = {x}",
    ),
    "mean": (
        "if {c} is int or {c} is float:",
        "    {s} = ({x}, 1) if {s} is None else ({s}[0] + {x}, {s}[1] + 1)",
        "elif {x} is not None: {s} = {add}({s}, {x})",
    ),
    "first": ("if {x} is not None and ({s} is None or t < {s}[0]): {s} = (t, {x})",),
    "last": ("if {x} is not None and ({s} is None or t >= {s}[0]): {s} = (t, {x})",),
    "any": ("{s} = {s} or bool({x})",),
    "all": ("{s} = {s} and ({x} is None or bool({x}))",),
    "collect": (),
    "distinct": ("{y} = {x}", "if {c} not in plain: {y} = alike({x}); hash({y})"),
    "count_if": ("if {x}: {s} += 1",),
}
_STEP: Final = ("{s} = {add}({s}, {x})",)
_TIMED_STEP: Final = ("if {x} is not None: {s} = {add}({s}, (t, {x}))",)
#: Of accumulators that change in place, what comes before: see `Taking`.
_PREPARED: Final = ("{y} = None if {x} is None else prepare{at}({x})",)
_TAKEN: Final = "if {x} is not None: {s} = take{at}({s}, {y})"
#: Code that changes an accumulator in place comes when nothing can fail any more.
_COMMITS: Final = {
    "collect": "if {x} is not None: {s}.append({x})",
    "distinct": "if {x} is not None: {s}.add({y})",
}
_EMPTY: Final = {
    "count": "0",
    "collect": "[]",
    "distinct": "set()",
    "top": "[]",
    "any": "False",
    "all": "True",
    "custom": "{create}()",
    "count_if": "0",
    "quantile": "[]",
    "approx_distinct": "set()",
    "mode": "dict()",
    "heavy_hitters": "(dict(), 0)",
}
#: Their results are numbers or truth values.
_NUMBERS: Final = frozenset(
    {"count", "count_if", "variance", "stddev", "any", "all", "quantile", "approx_distinct", "ewma"}
)
_TYPED: Final = frozenset({"sum", "mean", "min", "max", "distinct"})


def one_or_all(aggregates: Mapping[str, Aggregate], *, is_single: bool) -> Aggregates:
    return next(iter(aggregates.values())) if is_single else aggregates


def fold_of(aggregates: Aggregates, *, only_changed: bool = False) -> Fold:
    """Return a fold with the result of one aggregate, or a dict of those of several, by names.

    Args:
        only_changed: a record that has not changed the accumulator of the one gives no result,
            running.

    Raises:
        ConfigError: there are none, or one is none.
    """
    if isinstance(aggregates, Aggregate):
        one = aggregates
        if one.kind == "count":
            return _count(one, None)
        return _fold([one], lambda kept: one.result(kept[0]), only_changed=only_changed)
    check_aggregates(aggregates)
    names, all_of = list(aggregates), list(aggregates.values())
    if [each.kind for each in all_of] == ["count"]:
        return _count(all_of[0], names)
    return _fold(all_of, _Code(all_of).results(names), names)


class RunningAggregate(RunningStage):
    """Aggregates each key over the whole stream; yields ``(key, result)`` after every record.

    Its fold is one of `fold_of`.
    """

    def __init__(self, context: TaskContext, name: str, key: KeyFunction, fold: Fold) -> None:
        super().__init__(context, name, key, fold)
        assert fold.running is not None, "folds of this module have it"
        self._loop = fold.running(key)

    def process(self, batch: Batch) -> Iterator[Batch]:
        def reject(error: BaseException, at: int) -> None:
            self._reject(error, batch.values[at], batch.timestamps[at])

        times = batch.timestamps
        out, left_out = self._loop(self._current, batch.values, times, reject)
        if out:
            if self._changes is not None:
                self._changes.note((key for key, _ in out), len(out))
            yield batch.giving(out, without(times, left_out) if left_out else times)


# -- folds -------------------------------------------------------------------------------------


def _count(aggregate: Aggregate, names: list[str] | None) -> Fold:
    return Fold(
        kind="count",
        first=lambda _: 1,
        add=lambda total, _: total + 1,
        merge=lambda total, other: total + other,
        result=None if names is None else lambda total: {names[0]: total},
        running=partial(_Code([aggregate]).running, names=names, is_bare=True),
        commutes=True,
        is_pure=True,
    )


def _fold(
    aggregates: list[Aggregate],
    result: Callable[[Any], Any],
    names: list[str] | None = None,
    *,
    only_changed: bool = False,
) -> Fold:
    code, kinds = _Code(aggregates), {each.kind for each in aggregates}
    return Fold(
        kind="fold",
        first=code.function("first"),
        add=code.function("add"),
        merge=code.merge(),
        result=result,
        timed=code.is_timed,
        loop=code.loop,
        running=partial(code.running, names=names, only_changed=only_changed),
        # Of a window, only lists tell the order of records that differ in time.
        commutes=kinds.isdisjoint(OF_ORDER),
        is_pure=kinds.isdisjoint(_GROWING),
    )


class _Where(NamedTuple):
    """What an aggregate takes of the records that count for it; each condition is asked once."""

    of: Field
    where: Field


def _read_of(aggregate: Aggregate) -> Any:
    if aggregate.where is None or aggregate.is_by:
        return aggregate.value
    return _Where(aggregate.of, aggregate.where)


def _getter_of(of: Any) -> Callable[[Any], Any]:
    return value_getter(of.of if type(of) is _Where else of)


def _numbered(of: Iterable[Any]) -> dict[Any, int]:
    """Return different fields with their numbers. Those of expressions are found by identity."""
    return {each: at for at, each in enumerate(dict.fromkeys(of))}


class _Code:
    """Makes the functions that take records into the accumulators of some aggregates."""

    def __init__(self, aggregates: list[Aggregate]) -> None:
        self._aggregates = aggregates
        self.is_timed = any(each.is_timed for each in aggregates)
        self._reads = list(map(_read_of, aggregates))
        of_all = [
            of for of, each in zip(self._reads, aggregates, strict=True) if each.kind != "count"
        ]
        self._of = _numbered(of_all)  # Each is taken once, however many need it.
        self._names: dict[str, Any] = {
            "plain": PLAIN,
            "alike": one_if_key,
            "zoned": ORDERED_BY_ZONE,
            "one_key": one_key,
            "errors": USER_ERRORS,
            "length_hint": length_hint,
            "named": self._named,
            "direct": WITH_ATTRIBUTES,
        }
        self._wheres = _numbered(of.where for of in self._of if type(of) is _Where)
        self._getters = {f"f{at}": _getter_of(of) for at, of in enumerate(self._of)}
        self._getters |= {f"g{at}": value_getter(of) for at, of in enumerate(self._wheres)}
        self._names |= self._getters
        self._names |= {f"add{at}": each.add for at, each in enumerate(aggregates)}
        self._names |= {f"create{at}": each.create for at, each in enumerate(aggregates)}
        self._names |= {f"result{at}": each.result for at, each in enumerate(aggregates)}
        for at, each in enumerate(aggregates):
            if each.taking is not None:
                self._names |= {f"prepare{at}": each.taking.prepare, f"take{at}": each.taking.take}

    def function(self, name: str) -> Callable[..., Any]:
        """Return ``first`` or ``add`` of a fold."""
        arguments = [*(["kept"] if name == "add" else []), "r", *(["t"] if self.is_timed else [])]
        accumulators = self._accumulators()
        lines = [f"def made({', '.join(arguments)}):"]
        body = [
            "try:",
            *indented(self._values() or ["pass"], 1),
            "except (KeyError, AttributeError) as error:",
            "    raise named(error, r)",
            *([f"{accumulators}, = kept"] if name == "add" else [self._empty()]),
            *self._steps(),
            f"return ({accumulators},)",
        ]
        return compiled([*lines, *indented(body, 1)], self._names, what="aggregates")

    def loop(self, key: KeyFunction) -> FoldLoop:
        accumulators = self._accumulators()
        pairs = "zip(pending, times)" if self.is_timed else "pending"
        lines = [
            "def made(kept, values, times, reject):",
            "    get = kept.get",
            "    pending = iter(values)",
            f"    for {'r, t' if self.is_timed else 'r'} in {pairs}:",
            "        try:",
            *indented([*self._values(key), "a = get(k)"], 3),
            "            if a is None: k = one_key(k); a = get(k)",
            f"            if a is None: {self._empty()}",
            f"            else: {accumulators}, = a",
            *indented([*self._steps(), f"kept[k] = ({accumulators},)"], 3),
            "        except errors as error:",
            "            reject(named(error, r, key), len(values) - length_hint(pending) - 1)",
            "    return keys(kept, values)",
        ]
        names = self._names | {"key": key, "keys": _keys_of(key)}
        return compiled(lines, names, what="aggregates")

    def merge(self) -> Callable[[Any, Any], Any] | None:
        """Return a function that joins two values of a key; None if an aggregate has no way."""
        merges = {f"merge{at}": each.merge for at, each in enumerate(self._aggregates)}
        if None in merges.values():
            return None
        others = ", ".join(f"o{at}" for at in range(len(merges)))
        joined = [f"merge{at}(s{at}, o{at})" for at in range(len(merges))]
        lines = [
            "def made(kept, other):",
            f"    {self._accumulators()}, = kept",
            f"    {others}, = other",
            f"    return ({', '.join(joined)},)",
        ]
        return compiled(lines, merges, what="aggregates")

    def results(self, names: list[str]) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
        """Return a function that makes the dict of results of the accumulators of a key."""
        given = [
            f"s{at}" if each.result is itself else f"result{at}(s{at})"
            for at, each in enumerate(self._aggregates)
        ]
        pairs = ", ".join(f"{name!r}: {of}" for name, of in zip(names, given, strict=True))
        lines = [
            "def made(kept):",
            f"    {self._accumulators()}, = kept",
            f"    return {{{pairs}}}",
        ]
        return compiled(lines, self._names, what="aggregates")

    def running(
        self,
        key: KeyFunction,
        *,
        names: list[str] | None,
        is_bare: bool = False,
        only_changed: bool = False,
    ) -> RunningLoop:
        """Return a loop that folds a batch in, and gives the results after each record.

        Args:
            names: of the results, which are given as a dict; None for the one result itself.
            is_bare: the value of a key is the one accumulator itself.
            only_changed: no result of a record that leaves the first accumulator as it was.
        """
        accumulators = self._accumulators()
        shared = [
            at
            for at, each in enumerate(self._aggregates)
            if not (each.gives_own or each.kind in _NUMBERS)
        ]
        value = accumulators if is_bare else f"({accumulators},)"
        given, results = [], []
        for at, each in enumerate(self._aggregates):
            is_kept = each.result is itself
            given.append(f"s{at}" if is_kept and at not in shared else f"v{at}")
            if given[-1] == f"v{at}":
                results.append(f"v{at} = s{at}" if is_kept else f"v{at} = result{at}(s{at})")
        pairs = [f"{name!r}: {of}" for name, of in zip(names or (), given, strict=False)]
        here = "len(values) - length_hint(pending) - 1"
        lines = [
            "def made(kept, values, times, reject):",
            "    get, out, left_out = kept.get, [], []",
            "    put, leave = out.append, left_out.append",
            "    pending = iter(values)",
            f"    for {'r, t in zip(pending, times)' if self.is_timed else 'r in pending'}:",
            "        try:",
            *indented([*self._values(key), "a = get(k)"], 3),
            "            if a is None:",
            "                k = one_key(k); a = get(k)",
            f"                if a is None: {self._empty()}",
            f"                else: {accumulators}{'' if is_bare else ','} = a",
            f"            else: {accumulators}{'' if is_bare else ','} = a",
            *indented(["b = s0"] if only_changed else [], 3),
            *indented(self._steps(), 3),
            *indented([f"if s0 is b: leave({here}); continue"] if only_changed else [], 3),
            *indented(results, 3),
            f"            kept[k] = {value}",
            "        except errors as error:",
            f"            leave({here}); reject(named(error, r, key), {here}); continue",
            *indented([f"if type(v{at}) not in atoms: v{at} = own(v{at})" for at in shared], 2),
            f"        put((k, {'{' + ', '.join(pairs) + '}' if names else given[0]}))",
            "    return out, left_out",
        ]
        scope = self._names | {"key": key, "atoms": ATOMS, "own": own}
        return compiled(lines, scope, what="aggregates")

    def _accumulators(self) -> str:
        return ", ".join(f"s{at}" for at in range(len(self._aggregates)))

    def _empty(self) -> str:
        parts = [
            f"s{at} = {_EMPTY.get(each.kind, 'None').format(create=f'create{at}')}"
            for at, each in enumerate(self._aggregates)
        ]
        return "; ".join(parts)

    def _values(self, key: KeyFunction | None = None) -> list[str]:
        """Return lines that read what the aggregates need of a record, and its key.

        Fields are read without a call: of a dict, and of records that are known to be no mappings.
        """
        names, calls, first, counted = dict[str, str](), list[str](), list[str](), dict[str, str]()
        for at, where in enumerate(self._wheres):
            if isinstance(where, str):
                names[f"w{at}"] = where
            else:
                first.append(f"w{at} = g{at}(r)")
        for at, of in enumerate(self._of):
            x = f"x{at}"
            if type(of) is _Where:
                counted[x] = f" if w{self._wheres[of.where]} else None"
                of = of.of  # noqa: PLW2901 - the same without its condition
            if isinstance(of, str):
                names[x] = of
            else:
                read = "r" if of is None else f"f{at}(r)"
                if of in self._wheres:  # It is asked already, as a condition.
                    read = f"w{self._wheres[of]}"
                calls.append(f"{x} = {read}{counted.get(x, '')}")
        is_named = isinstance(key, FieldGetter | FieldsGetter)
        if key is not None and not is_named:
            calls.append("k = key(r)")
        lines = [*first, *calls]
        if names or is_named:
            of_key = key.names if isinstance(key, FieldGetter | FieldsGetter) else ()
            used = [*of_key, *names.values()]
            # Python writes others, such as µ, in another form than a field may have.
            plain = all(each.isascii() and each.isidentifier() for each in used)
            plain = plain and not any(map(iskeyword, used))

            def reads(form: str) -> str:
                found = [
                    f"{x} = {form.format(name)}{counted.get(x, '')}" for x, name in names.items()
                ]
                if is_named:
                    fields = ", ".join(map(form.format, of_key))
                    found.append(
                        f"k = {fields}" if type(key) is FieldGetter else f"k = ({fields},)"
                    )
                return "; ".join(found)

            asked = [
                f"{x} = {'f' if x[0] == 'x' else 'g'}{x[1:]}(r){counted.get(x, '')}" for x in names
            ]
            asked += ["k = key(r)"] if is_named else []
            lines = [
                *first,
                "d = type(r)",
                f"if d is dict: {reads('r[{!r}]')}",
                *([f"elif d in direct: {reads('r.{}')}"] if plain else []),
                f"else: {'; '.join(asked)}",
                *calls,
            ]
        typed = {
            of
            for of, each in zip(self._reads, self._aggregates, strict=True)
            if each.kind in _TYPED
        }
        return lines + [f"c{at} = type(x{at})" for at, of in enumerate(self._of) if of in typed]

    def _steps(self) -> list[str]:
        steps: list[str] = []
        commits: list[str] = []
        # Users' code may change its arguments, so it comes when the rest cannot fail.
        order = sorted(enumerate(self._aggregates), key=lambda pair: pair[1].kind == "custom")
        for at, each in order:
            value = self._of[self._reads[at]] if each.kind != "count" else 0
            words = {
                "s": f"s{at}", "x": f"x{value}", "c": f"c{value}", "y": f"y{at}", "add": f"add{at}"
            }  # fmt: skip
            others = _STEP if each.taking is None else _PREPARED
            others = _TIMED_STEP if each.is_timed else others
            steps += [line.format(at=at, **words) for line in _STEPS.get(each.kind, others)]
            commit = _COMMITS.get(each.kind) or (_TAKEN if each.taking is not None else None)
            if commit is not None:
                commits.append(commit.format(at=at, **words))
        return steps + commits

    def _named(self, error: BaseException, record: Any, *keys: KeyFunction) -> BaseException:
        if type(error) not in {KeyError, AttributeError}:
            return error
        getters = [*self._getters.values(), *keys]
        try:
            for each in getters:
                if isinstance(each, FieldGetter | FieldsGetter):
                    each(record)
        except LookupError as better:
            return better
        return error


def _keys_of(key: KeyFunction) -> Callable[[dict[Any, Any], list[Any]], Iterator[Any]]:
    """Return a function that finds the keys of a batch again; rarely called."""

    def keys(kept: dict[Any, Any], values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            try:
                found = key(value)
                if found not in kept:
                    found = one_key(found)
                if found in kept:
                    yield found
            except USER_ERRORS:  # It was told when the record was folded.
                continue

    return keys
