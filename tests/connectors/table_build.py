"""Options of tables as users give them."""

from collections.abc import Sequence
from typing import Any

from gearpy.connectors.partitioned.columns import key_names, partition_fields
from gearpy.connectors.partitioned.rows import TableOptions, table_schema
from gearpy.messages.data import Batch


def table_options(operator: str = "table", **given: Any) -> TableOptions:
    return TableOptions(
        operator=operator,
        schema=table_schema(operator, given.get("schema")),
        key=key_names(given.get("key")),
        fields=partition_fields(operator, given.get("partition_by")),
        compression=given.get("compression", "snappy"),
        partitions_max=given.get("partitions_max", 256),
        prefix=given.get("prefix", "part"),
    )


def a_batch(numbers: Sequence[int]) -> Batch:
    rows = [{"n": number, "p": f"p{number % 3}"} for number in numbers]
    return Batch(rows, [0] * len(rows))
