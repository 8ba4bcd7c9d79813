"""Names of steps in other libraries, with what stands for them here."""

from collections.abc import Collection, Mapping
from typing import Final

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
