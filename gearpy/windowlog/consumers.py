"""The readers of a window log, and whether they keep up: for the task that writes it."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gearpy.core.handover.window_log import LogView
from gearpy.messages.summaries import ConsumerReport
from gearpy.windowlog.log import WindowLog

#: The store may be far away, so it is asked no more often.
_CHECK_MS: Final = 5_000


class _Seen(NamedTuple):
    lanes: Mapping[str, int]
    waiting_since_ms: int


class LogConsumers:
    """The reports of readers, as reports of the task that writes.

    A reader waits from when it was first seen to lag behind with the same position as before; so
    one that reads on is never called stuck, however far behind it is.

    Runs on: one thread at a time; it reads small files, and at most every five seconds.
    """

    def __init__(
        self, log: WindowLog, wall_ms: Callable[[], int], *, but: frozenset[str] = frozenset()
    ) -> None:
        self._log = log
        self._wall_ms = wall_ms
        self._but = but
        self._checked_ms: int | None = None
        self._seen: dict[str, _Seen] = {}
        self._reports: tuple[ConsumerReport, ...] = ()

    def reports(self) -> tuple[ConsumerReport, ...]:
        """Return a report for each reader that has ever reported; earlier ones if they are fresh.

        A store that cannot be read just now says nothing new.
        """
        now_ms = self._wall_ms()
        if self._checked_ms is not None and now_ms - self._checked_ms < _CHECK_MS:
            return self._reports
        self._checked_ms = now_ms
        try:
            # Functions on Spark are told of by the sinks that call them.
            readers = [
                each
                for each in self._log.readers()
                if each.name not in self._but and each.more.get("kind") != "to_spark"
            ]
            view = self._log.view() if readers else LogView(())
        except OSError:
            return self._reports
        reports: list[ConsumerReport] = []
        for reader in readers:
            waiting = view.rows_between(reader.lanes, view.ends())
            before = self._seen.get(reader.name)
            since_ms = now_ms if waiting else 0
            if waiting and before is not None and before.lanes == reader.lanes:
                since_ms = before.waiting_since_ms or now_ms
            self._seen[reader.name] = _Seen(reader.lanes, since_ms)
            report = ConsumerReport(
                name=reader.name,
                batch_id=reader.batch_id or 0,
                rows_per_s=reader.rows_per_s or 0.0,
                waiting_rows=waiting,
                waiting_since_ms=since_ms,
                trouble=str(reader.more.get("trouble") or ""),
            )
            reports.append(report)
        self._reports = tuple(reports)
        return self._reports
