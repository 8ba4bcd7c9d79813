"""Numbers, times and foreign text, as people read them."""

from datetime import UTC, datetime, timedelta
from typing import Final

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.summaries import ApplicationSummary, ErrorCard
from gearpy.views.model import UserFigure

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_KILO: Final = 1000
_FEW: Final = 10  # Below it a digit behind the point counts.


def run_again(app_id: int, card: ErrorCard, *, record: int | None = None) -> str:
    """Return the command that runs the task of a failure, or of a record, again; empty if none."""
    if not card.epoch:
        return ""
    if record is not None:
        return f"gear debug {app_id} --record {record}"
    return f"gear debug {app_id} {card.task} --epoch {card.epoch - 1} --until {card.epoch}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def duration(span_ms: int) -> str:
    """Return a time span in two units: ``1.2 s``, ``3 m 05 s``, ``2 h 03 m``, ``324 d 00 h``."""
    if span_ms < _MINUTE_MS:
        return f"{span_ms / _SECOND_MS:.1f} s"
    if span_ms < _HOUR_MS:
        return f"{span_ms // _MINUTE_MS} m {span_ms % _MINUTE_MS // _SECOND_MS:02} s"
    if span_ms < _DAY_MS:
        return f"{span_ms // _HOUR_MS} h {span_ms % _HOUR_MS // _MINUTE_MS:02} m"
    return f"{span_ms // _DAY_MS} d {span_ms % _DAY_MS // _HOUR_MS:02} h"


def time(time_ms: int) -> str:
    """Return a time since the epoch in ISO form, in UTC; years that Python lacks as a number."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    timespec = "milliseconds" if time_ms % _SECOND_MS else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def moment(wall_ms: int) -> str:
    """Return a wall time as `time` does, without the part of a second; empty for none."""
    return time(wall_ms // _SECOND_MS * _SECOND_MS) if wall_ms else ""


def watermark(watermark_ms: int | None) -> str:
    """Return a watermark as a time, ``start`` or ``end``; empty if none is known."""
    if watermark_ms is None:
        return ""
    ends = {MIN_MS: "start", MAX_MS: "end"}
    return ends.get(watermark_ms) or time(watermark_ms)


def duration_ms_of(summary: ApplicationSummary, now_ms: int) -> int:
    return max(0, (summary.finished_ms or now_ms) - summary.submitted_ms)


def printable(text: str) -> str:
    """Return foreign text with control characters escaped, so that it cannot steer a terminal."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def html(words: str) -> str:
    from html import escape  # noqa: PLC0415 - executors draw no page, and its table is large

    return escape(printable(words))


def short(number: float) -> str:
    """Return a number in three or four figures: ``0.4``, ``950``, ``48.2 k``, ``1.0 M``."""
    if number < _KILO:
        return f"{number:.1f}" if 0 < number < _FEW and number != round(number) else f"{number:.0f}"
    for unit in ("k", "M", "G"):
        number /= _KILO
        if round(number, 1) < _KILO:
            return f"{number:.1f} {unit}"
    return f"{number / _KILO:,.1f} T"


def rate(per_s: float | None) -> str:
    """Return a rate with its unit: ``48.2 k/s``, ``3.2 /s``; empty if it is not known."""
    if per_s is None:
        return ""
    number = short(per_s)
    return f"{number}/s" if number[-1].isalpha() else f"{number} /s"


def metric(figure: UserFigure) -> str:
    """Return a metric of the program: ``1,204``, ``950, 31 /s``, ``p50 3.5, p99 8.0, 31 /s``."""
    parts = [value(figure.value)]
    if figure.p50 is not None and figure.p99 is not None:
        parts = [f"p50 {value(figure.p50)}", f"p99 {value(figure.p99)}"]
    return ", ".join([*parts, *([rate(figure.rate)] if figure.rate is not None else [])])


def value(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= _KILO else f"{number:.4g}"


def size(size_bytes: float | None) -> str:
    """Return a size with its unit: ``14.0 MB``; empty if it is not known."""
    if size_bytes is None:
        return ""
    number = short(size_bytes)
    return f"{number}B" if number[-1].isalpha() else f"{number} B"


def share(part: float | None) -> str:
    return "" if part is None else f"{part * 100:.0f} %"


def span(span_ms: float | None) -> str:
    """Return a time span, short ones in ms: ``38 ms``, ``1.2 s``; empty if it is not known."""
    if span_ms is None:
        return ""
    return f"{span_ms:.0f} ms" if span_ms < _SECOND_MS else duration(round(span_ms))


def past(known_ms: int) -> str:
    """Return since when nothing newer is known of an application."""
    return f"as it was at {moment(known_ms)}: its app master went without a word"
