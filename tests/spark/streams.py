"""Queries of streams that run to their end, also on a machine that does a lot besides."""

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from tests.eventually import DEADLINE_S, eventually


def run_to_end(start: Callable[[], StreamingQuery], within_s: float = DEADLINE_S) -> StreamingQuery:
    """Run a query; again if Spark could not wait for its Python, as it does for 10 s."""

    def ended() -> StreamingQuery | None:
        try:
            query = start()
            query.awaitTermination()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
            return None
        return query

    query: StreamingQuery = eventually(ended, "the query runs", within_s=within_s)
    return query
