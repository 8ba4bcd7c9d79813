"""Triggers: when a pane fires: early, when its window closes, or late.

A *pane* is the state of one key in one window; it *fires* when the result of its records is put
out. Gearpump has triggers in name only, and fires each window once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from gearpy.core.base.times import Duration, duration_ms
from gearpy.errors import ConfigError

#: More records than any window will have.
NEVER: Final = 1 << 62


class Pending(NamedTuple):
    """Fresh records of a pane, and the clocks, for a trigger to judge."""

    records: int  #: How many.
    oldest_ms: int  #: The oldest event time among them.
    since_ms: int  #: Wall time when the first of them came.
    event_ms: int  #: The watermark.
    now_ms: int  #: Wall time.


@dataclass(frozen=True, slots=True)
class EveryCount:
    """Fires when so many records have come since the pane fired last."""

    records: int

    def holds(self, pending: Pending) -> bool:
        return pending.records >= self.records


@dataclass(frozen=True, slots=True)
class EveryEvent:
    """The watermark has come so far past the oldest record that was not fired yet."""

    interval_ms: int

    def holds(self, pending: Pending) -> bool:
        return pending.event_ms >= pending.oldest_ms + self.interval_ms


@dataclass(frozen=True, slots=True)
class EveryWall:
    """Fires when so much wall time has gone since the first record that was not fired yet."""

    interval_ms: int

    def holds(self, pending: Pending) -> bool:
        return pending.now_ms >= pending.since_ms + self.interval_ms


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Fires when one of several triggers holds."""

    triggers: "tuple[Repeat, ...]"

    def holds(self, pending: Pending) -> bool:
        return any(each.holds(pending) for each in self.triggers)


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of several triggers hold."""

    triggers: "tuple[Repeat, ...]"

    def holds(self, pending: Pending) -> bool:
        return all(each.holds(pending) for each in self.triggers)


#: A trigger that fires again and again, each time for what has come since it fired last. What
#: holds for a pane goes on to do so until it fires, so only one that has changed must be asked.
Repeat: TypeAlias = EveryCount | EveryEvent | EveryWall | AnyOf | AllOf

EACH_RECORD: Final = EveryCount(1)


@dataclass(frozen=True, slots=True)
class AfterWatermark:
    """Fires when the window closes; by ``early`` before that, by ``late`` behind it.

    Behind it there are records only where lateness is allowed. ``late`` None is each of them.
    """

    early: Repeat | None = None
    late: Repeat | None = None


#: What windows have that nobody gives a trigger.
AT_CLOSE: Final = AfterWatermark()

#: A `Repeat` alone is ``after_watermark(early=it, late=it)``.
Trigger: TypeAlias = AfterWatermark | Repeat


def every(
    wall: Duration | None = None, *, count: int | None = None, event: Duration | None = None
) -> Repeat:
    """Return a trigger that fires again and again while records come. Give one of the three.

    Args:
        wall: wall time since the first record that was not fired yet, as in ``every("1s")``.
        count: records since the last firing.
        event: how far the watermark has come past the oldest record that was not fired yet.

    Raises:
        ConfigError: none or several are given, or it is no more than 0.
    """
    given = [
        name
        for name, value in (("a duration", wall), ("count", count), ("event", event))
        if value is not None
    ]
    if len(given) != 1:
        raise ConfigError(
            f"every takes one of a duration, count and event, not {' and '.join(given) or 'none'}: "
            "write every('1s'), every(count=100) or every(event='1s'), and any_of for several"
        )
    if wall is not None:
        return EveryWall(_positive("every", duration_ms(wall), " ms"))
    if event is not None:
        return EveryEvent(_positive("every: event", duration_ms(event), " ms"))
    return EveryCount(_positive("every: count", count))


def any_of(*triggers: Repeat) -> AnyOf:
    """Return a trigger that fires as soon as one of several holds.

    Raises:
        ConfigError: there is none, or one is no `every`, `any_of` or `all_of`.
    """
    return AnyOf(_some_repeats("any_of", triggers))


def all_of(*triggers: Repeat) -> AllOf:
    """Return a trigger that fires as soon as all of several hold.

    Raises:
        ConfigError: there is none, or one is no `every`, `any_of` or `all_of`.
    """
    return AllOf(_some_repeats("all_of", triggers))


def after_watermark(early: Repeat | None = None, late: Repeat | None = None) -> AfterWatermark:
    """Return the trigger that fires when the watermark has reached the end of a window.

    Args:
        early: fires before that as well.
        late: fires for records that come behind it, within the lateness that windows allow; left
            out, each of them does so at once.

    Raises:
        ConfigError: one is no `every`, `any_of` or `all_of`.
    """
    _check_repeats("after_watermark", [each for each in (early, late) if each is not None])
    return AfterWatermark(early, late)


def after_count(count: int) -> AfterWatermark:
    """Return the trigger that fires with every ``count`` records, and the rest at the close.

    Raises:
        ConfigError: it is no more than 0.
    """
    each = EveryCount(_positive("after_count: count", count))
    return AfterWatermark(early=each, late=each)


def check_trigger(trigger: object) -> None:
    """Check a trigger.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(trigger, AfterWatermark):
        _check_repeats("triggering", [trigger])


def phases_of(trigger: Trigger) -> tuple[Repeat | None, Repeat]:
    if isinstance(trigger, AfterWatermark):
        return trigger.early, trigger.late or EACH_RECORD
    return trigger, trigger


def by_wall_time(trigger: Repeat) -> Repeat:
    if isinstance(trigger, EveryEvent):
        return EveryWall(trigger.interval_ms)
    if isinstance(trigger, AnyOf | AllOf):
        return type(trigger)(tuple(map(by_wall_time, trigger.triggers)))
    return trigger


def counts_records(trigger: Repeat | None) -> bool:
    """Tell whether it depends on how many records there are when a trigger holds."""
    if isinstance(trigger, AnyOf | AllOf):
        return any(map(counts_records, trigger.triggers))
    return isinstance(trigger, EveryCount)


def records_wanted(trigger: Repeat | None, pending: Pending) -> int:
    """Return how many records a pane must have to fire, by clocks that stand still.

    `NEVER` for a trigger that the clocks do not let hold.
    """
    if isinstance(trigger, AnyOf | AllOf):
        wanted = [records_wanted(each, pending) for each in trigger.triggers]
        return min(wanted) if isinstance(trigger, AnyOf) else max(wanted)
    if isinstance(trigger, EveryCount):
        return trigger.records
    return 0 if trigger is not None and trigger.holds(pending) else NEVER


def delays_of(trigger: Repeat | None, kind: type[EveryEvent] | type[EveryWall]) -> list[int]:
    """Return how long after a record a trigger must be asked once more, by one of the clocks."""
    if isinstance(trigger, AnyOf | AllOf):
        return sorted({delay for each in trigger.triggers for delay in delays_of(each, kind)})
    return [trigger.interval_ms] if isinstance(trigger, kind) else []


def _positive(name: str, value: object, unit: str = "") -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ConfigError(f"{name} is {value!r}{unit}, must be a whole number more than 0")
    return value


def _some_repeats(name: str, triggers: "tuple[Repeat, ...]") -> "tuple[Repeat, ...]":
    if not triggers:
        raise ConfigError(f"{name} has no triggers: write {name}(every(count=100), every('1s'))")
    _check_repeats(name, triggers)
    return triggers


def _check_repeats(name: str, triggers: Sequence[object]) -> None:
    mistakes = [
        f"{name} cannot take {each!r}: write every(count=100), every('1s'), every(event='1s'), "
        "any_of(...) or all_of(...)"
        for each in triggers
        if not isinstance(each, EveryCount | EveryEvent | EveryWall | AnyOf | AllOf)
    ]
    if mistakes:
        raise ConfigError(*mistakes)
