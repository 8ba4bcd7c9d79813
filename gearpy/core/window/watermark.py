"""Event-time progress of one task: from its input links, or from the records of a source.

Gearpump asks a central clock service for the upstream clock; here the watermark travels in
band with the records, and a link that is idle holds nothing back.
"""

from collections.abc import Iterable, Sequence

from gearpy.ids import MAX_MS, MIN_MS, TaskId


class WatermarkTracker:
    """The minimum over a task's input links that are not idle.

    A link counts from the start, before its first message, so that a source that is slow to
    start is waited for. A link that has ended holds nothing back. When all other links are idle
    the task is idle, and the watermark is the most that they have promised, as if the one that is
    furthest had become idle last: what is known must not depend on the order in which they did,
    nor on whether a link told its last promise before it became idle or with that. The end comes
    only when every link has ended, for an idle link may give again.

    Invariant: `watermark_ms` never moves backwards, is at most the watermark of every link that
    was not idle when it last moved, or of one link if all were, and is `MAX_MS` only if all links
    are there. A task that was restarted begins with the watermark it had, until its links have
    come there again.
    """

    def __init__(self, links: Iterable[TaskId], watermark_ms: int = MIN_MS) -> None:
        self._watermarks = dict.fromkeys(links, MIN_MS)
        self._active = dict(self._watermarks)  # Neither idle nor ended.
        self._open = set(self._watermarks)  # Not ended.
        self.watermark_ms = watermark_ms

    @property
    def is_idle(self) -> bool:
        return bool(self._open) and not self._active

    def on_link(self, link: TaskId, watermark_ms: int, *, idle: bool) -> bool:
        before = self._watermarks[link]
        known = max(before, watermark_ms)
        self._watermarks[link] = known
        if known == MAX_MS:
            self._open.discard(link)
            self._active.pop(link, None)
            holds = before < known
        elif idle:
            holds = self._active.pop(link, None) is not None or not self._active
        else:
            holds = before <= self.watermark_ms or link not in self._active
            self._active[link] = known
        return holds and self._advance()

    def _advance(self) -> bool:
        moved = (reached_ms := self._reached_ms()) > self.watermark_ms
        self.watermark_ms = max(self.watermark_ms, reached_ms)
        return moved

    def _reached_ms(self) -> int:
        if self._active:
            return min(self._active.values())
        return max((self._watermarks[link] for link in self._open), default=MAX_MS)


class BoundedOutOfOrder:
    """Watermark of a partition whose records are at most ``bound_ms`` out of order.

    A pure function of the partition's prefix, so that a replay promises the same again.
    """

    def __init__(self, bound_ms: int = 0) -> None:
        self._bound_ms = bound_ms
        self.watermark_ms = MIN_MS

    def on_records(self, timestamps: Sequence[int]) -> None:
        if timestamps:
            self.watermark_ms = max(self.watermark_ms, max(timestamps) - self._bound_ms)
