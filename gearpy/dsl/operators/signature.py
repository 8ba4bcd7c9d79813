"""Texts of keys, windows and aggregates that are alike in every process.

They say nothing of functions, which may be rewritten, renamed and moved.
"""

from collections.abc import Mapping
from typing import Final

from gearpy.core.base.fields import Computed
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.trigger import AfterWatermark
from gearpy.core.window.windows import (
    CALENDAR,
    CountWindows,
    GlobalWindows,
    LocalSlidingWindows,
    LocalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    Windows,
)
from gearpy.dsl.operators.keys import EVERYTHING, ITSELF, Key

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))


def key_text(key: Key | None) -> str:
    """Return a key for people; empty for none."""
    if key is None:
        return ""
    if key.function is EVERYTHING.function:
        return "nothing"
    if key.columns:
        return ", ".join(key.columns)
    if key.expressions:
        return ", ".join(map(str, key.expressions))
    return "the record" if key is ITSELF else "a function"


def windows_text(windows: Windows) -> str:
    parts = [_shape(windows)]
    if windows.clock != "event":
        parts.append(f"{windows.clock} time")
    if windows.trigger != AfterWatermark():
        parts.append(f"fires {windows.trigger}")
    if windows.accumulation != "discarding":
        parts.append(windows.accumulation)
    if windows.allowed_lateness_ms:
        parts.append(f"allows {_span(windows.allowed_lateness_ms)}")
    return ", ".join(parts)


def _shape(windows: Windows) -> str:
    match windows:
        case TumblingWindows():
            return f"tumbling {_span(windows.size_ms)}{_offset(windows.offset_ms)}"
        case LocalWindows():
            own = windows.size_ms, windows.offset_ms, windows.months
            unit = next((unit for unit, its in CALENDAR.items() if its == own), "")
            size = unit or f"tumbling {_span(windows.size_ms)}{_offset(windows.offset_ms)}"
            return f"{size} in {windows.zone}"
        case LocalSlidingWindows():
            every = f"sliding {_span(windows.size_ms)} every {_span(windows.every_ms)}"
            return f"{every}{_offset(windows.offset_ms)} in {windows.zone}"
        case SlidingWindows():
            every = f"sliding {_span(windows.size_ms)} every {_span(windows.every_ms)}"
            return f"{every}{_offset(windows.offset_ms)}"
        case SessionWindows():
            return f"session gap {_span(windows.gap_ms)}"
        case CountWindows():
            return f"count {windows.records}"
        case GlobalWindows():
            return "global"
    return repr(windows)


def _offset(offset_ms: int) -> str:
    return f" offset {_span(offset_ms)}" if offset_ms else ""


def _span(span_ms: int) -> str:
    for unit_ms, name in _UNITS:
        if span_ms % unit_ms == 0 and span_ms:
            return f"{span_ms // unit_ms} {name}"
    return f"{span_ms} ms"


def by_text(key: Key | None) -> str:
    return f" by {key_text(key)}" if key is not None else ""


def aggregates_text(aggregates: Mapping[str, Aggregate]) -> str:
    texts = []
    for name, each in aggregates.items():
        given = {"": each.of, "by=": each.by, "where=": each.where}
        fields = [
            f"{word}{of if isinstance(of, str | Computed) else 'a function'}"
            for word, of in given.items()
            if of is not None
        ]
        option = [str(each.option)] if each.option else []
        text = f"{each.kind}({', '.join([*option, *fields])})"
        texts.append(text if name == each.kind else f"{name}={text}")
    return ", ".join(texts)
