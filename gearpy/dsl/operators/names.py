"""Names of steps, and checks of their arguments."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, cast, get_args

from gearpy.core.base.fields import Computed
from gearpy.core.base.times import Duration, duration_ms
from gearpy.errors import ConfigError, NoSuchStep
from gearpy.task.api.rejects import StepOnError
from gearpy.task.stages.asynchronous import is_coroutine_function

#: How much alike two names are if one is a slip of the other; `map` is none of `max`.
_LIKE: Final = 0.7


def name_of(function: object) -> str:
    """Return the name of a function or class, as it is written in the program."""
    if isinstance(function, Computed):
        return str(function)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return cast("str", name).rpartition("<locals>.")[2].replace("<lambda>", "lambda")


def step_name(kind: str, function: object) -> str:
    return f"{kind}({name_of(function)})"


def check_on_error(kind: str, policy: StepOnError | None) -> None:
    """Check the policy of a step for records on which it raises.

    Raises:
        ConfigError: there is no such policy; a sink has no side output.
    """
    known = [each for each in get_args(StepOnError) if each != "side" or kind != "write"]
    if policy is not None and policy not in known:
        raise ConfigError(f"{kind}: on_error is {policy!r}, must be one of {', '.join(known)}")


def check_function(
    kind: str, function: Any, *, of: str = "a record", takes: int = 1, awaits: bool = False
) -> None:
    """Refuse a function that cannot be called so.

    Args:
        of: the arguments of its calls, for people.
        takes: how many arguments these are.
        awaits: the step awaits the function's result.

    Raises:
        ConfigError: it is no function, takes other arguments, or is asynchronous where nobody
            would await it.
    """
    if isinstance(function, Computed):
        return
    if not callable(function):
        raise ConfigError(f"{kind} needs a function of {of}, not {function!r}")
    if not awaits and (is_coroutine_function(function) or inspect.isasyncgenfunction(function)):
        raise ConfigError(
            f"{kind} does not await {_where(function)}, which is asynchronous: use map_async, and "
            f"{kind.partition(':')[0]} with what it gives"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Python does not know the arguments of some of its own functions.
    try:
        signature.bind(*[None] * takes)
    except TypeError as error:
        raise ConfigError(
            f"{kind} calls its function with {of}, and {_where(function)} takes {signature}: "
            f"{error}"
        ) from None


def _where(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    place = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"{name_of(function)}{place}"


def check_name(kind: str, what: str, name: Any, *, but: Collection[str] = ()) -> None:
    if not isinstance(name, str) or not name or name in but:
        taken = f" other than {', '.join(but)}" if but else ""
        raise ConfigError(f"{kind}: {what} is {name!r}, must be a name{taken}")


def check_count(kind: str, what: str, number: Any, *, example: str, least: int = 1) -> None:
    if type(number) is not int or number < least:
        raise ConfigError(
            f"{kind}: {what} is {number!r}, must be a whole number from {least}, such as {example}"
        )


def check_parallelism(kind: str, number: Any) -> None:
    if number is not None and (type(number) is not int or number < 1):
        raise ConfigError(f"{kind}: parallelism is {number!r}, must be a whole number from 1")


def duration_of(what: str, duration: Duration | None) -> int | None:
    """Return a duration in ms, or None for none."""
    if duration is None:
        return None
    with checked(what):
        found_ms = duration_ms(duration)
    if found_ms == 0:
        raise ConfigError(f"{what} is {duration!r}, must be more than 0")
    return found_ms


def no_such_step(what: str, name: str, known: Iterable[str], *, instead: str) -> NoSuchStep:
    """Make the error for a method that is not there; a known one that was meant is proposed."""
    public = [each for each in known if not each.startswith("_")]
    nearest = get_close_matches(name, public, n=1, cutoff=_LIKE)
    if own := own_words(name, public):
        advice = f"here it is {own}"
    else:
        advice = f"did you mean {nearest[0]}?" if nearest else instead
    return NoSuchStep(f"{what} no {name!r}{advice and ': '}{advice}")


@contextmanager
def checked(what: str) -> Iterator[None]:
    """Let mistakes name the call, or the argument, that they are about."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(*(f"{what}: {mistake}" for mistake in error.mistakes)) from None


#: What to write, and the names by which pandas, Spark, Flink, Kafka Streams and others know it.
_NAMES: Final[Mapping[str, str]] = {
    "write(gp.console())": "print pprint show display",
    "write(...)": "sink sink_to add_sink to to_topic to_table output write_stream save",
    "map(...)": "apply transform map_values",
    "with_columns(...)": "with_column assign",
    "select(...)": "select_expr",
    "map_async(...)": "async_map",
    "filter(...)": "where query",
    "flatten()": "explode",
    "flat_map(...)": "flat_map_batch flat_map_values",
    "key_by(...)": "groupby group_by_key partition_by key_on",
    "take(n)": "limit",
    "union(...)": "concat union_all connect",
    "unique(...)": "drop_duplicates dedup deduplicate distinct_until_changed",
    "repartition(n)": "rebalance rescale shuffle set_parallelism redistribute",
    "map_with_state(...)": "stateful_map stateful update map_groups_with_state scan accumulate",
    "process(...)": "process_function foreach for_each transform_with_state",
    "aggregate(...)": "agg",
    "to_list()": "collect",
    "aggregate(all=gp.agg.collect(...))": "collect_list",
    "window(gp.tumbling(...))": "tumbling_window tumbling time_window window_all resample",
    "window(gp.sliding(...))": "hopping_window hopping sliding_window sliding",
    "window(gp.session(...))": "session_window session",
    "time=... and out_of_order=... of the source": (
        "with_watermark with_timestamp assign_timestamps assign_timestamps_and_watermarks"
    ),
    "read(...)": (
        "source add_source from_source input stream read_stream topic dataframe load table"
    ),
    "gp.run(app), or `gear run` and `gear app submit` with the file": (
        "run start execute submit await_termination main"
    ),
}
_ADVICE: Final = {name: advice for advice, names in _NAMES.items() for name in names.split()}


def own_words(name: str, known: Collection[str]) -> str:
    """Return the words for a method of another library; empty if there are none."""
    own = "".join(f"_{letter.lower()}" if letter.isupper() else letter.lower() for letter in name)
    if own != name and own in known:
        return f"{own}(...)"
    advice = _ADVICE.get(own, "")
    method, call, _ = advice.partition("(")
    is_method = bool(call) and method.isidentifier()
    return advice if not is_method or method in known else ""
