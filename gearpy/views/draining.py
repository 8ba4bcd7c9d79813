"""Says now and then what a drain waits for, to somebody who waits for its end."""

from typing import Final

from gearpy.messages.summaries import ApplicationSummary
from gearpy.views import text

#: A drain that is over so soon needs no word.
_FIRST_MS: Final = 3_000
_EVERY_MS: Final = 5_000
_TIMEOUT_KEY: Final = "application.drain-timeout-seconds"


class DrainNotice:
    """Gives a line every few seconds, from when a drain was asked for to its end."""

    def __init__(self, *, began_ms: int, timeout_ms: int | None, way_out: str) -> None:
        self._began_ms = began_ms
        self._timeout_ms = timeout_ms
        self._way_out = way_out
        self._due_ms = began_ms + _FIRST_MS

    def line(self, summary: ApplicationSummary, now_ms: int) -> str:
        if now_ms < self._due_ms or summary.status not in {"pending", "active"}:
            return ""
        self._due_ms = now_ms + _EVERY_MS
        waits_for = summary.progress.waits_for
        what = f"waits for {waits_for}" if waits_for else "what was read is still being committed"
        times = f"stopping for {(now_ms - self._began_ms) // 1000} s"
        if self._timeout_ms is None:
            times += f"; it ends as failed when that takes longer than {_TIMEOUT_KEY}"
        else:
            times += f", after {self._timeout_ms // 1000} s ({_TIMEOUT_KEY}) it ends as failed"
        parts = (f"{what}; {times}", self._way_out)
        return text.printable("; ".join(each for each in parts if each))
