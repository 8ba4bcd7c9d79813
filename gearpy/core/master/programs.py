"""Programs that no application needs: when they go, and what is said of those that stay."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from msgspec import Struct

from gearpy.core.master.registry import TERMINAL
from gearpy.messages.summaries import ApplicationSummary

#: Programs go that were not needed for so long. A client submits an upload within it.
GRACE_MS: Final = 3_600_000

_Name = TypeVar("_Name", bound=Hashable)


class UnneededSince(Generic[_Name]):
    """Knows since when things are not needed, and names the ones unneeded for long enough.

    It counts from the first look that finds a thing not needed, and begins anew with each process.

    Invariant: what was needed at a look, or asked for, within ``grace_ms`` is never among those.
    """

    def __init__(self, grace_ms: int = GRACE_MS) -> None:
        self._grace_ms = grace_ms
        self._since: dict[_Name, int] = {}

    def on_used(self, name: _Name) -> None:
        self._since.pop(name, None)

    def look(self, there: Iterable[_Name], needed: Collection[_Name], now_ms: int) -> list[_Name]:
        self._since = {each: self._since.get(each, now_ms) for each in there if each not in needed}
        return [each for each, at_ms in self._since.items() if now_ms - at_ms >= self._grace_ms]


class ProgramsKept(Struct, frozen=True, kw_only=True):
    """The size of programs, by their need; ``largest`` is the largest that an application needs."""

    living: tuple[int, int] = (0, 0)  #: Number and bytes of those that living applications need.
    ended: tuple[int, int] = (0, 0)
    others: tuple[int, int] = (0, 0)  #: Those that none needs, and uploads under way.
    largest: ApplicationSummary | None = None
    largest_bytes: int = 0

    @classmethod
    def of(
        cls, sizes: Mapping[str, int], needed: Mapping[str, ApplicationSummary]
    ) -> "ProgramsKept":
        sums = dict.fromkeys(("living", "ended", "others"), (0, 0))
        largest: tuple[int, ApplicationSummary | None] = (0, None)
        for name, size in sizes.items():
            user = needed.get(name)
            kind = "others" if user is None else "ended" if user.status in TERMINAL else "living"
            number, total = sums[kind]
            sums[kind] = (number + 1, total + size)
            if user is not None and size > largest[0]:
                largest = (size, user)
        return cls(**sums, largest=largest[1], largest_bytes=largest[0])

    def refusal(self, quota_bytes: int, size: Callable[[float], str]) -> str:
        parts = [
            f"{number} {what} ({size(total)})"
            for (number, total), what in (
                (self.living, "of applications that run or wait"),
                (self.ended, "of applications that have ended, for gear app restart"),
                (self.others, "of none, which go within some hours"),
            )
            if number
        ]
        total = self.living[1] + self.ended[1] + self.others[1]
        text = (
            f"the programs of this master have {size(total)}, and artifact.quota-bytes is "
            f"{size(quota_bytes)}: {', '.join(parts)}"
        )
        if self.largest is not None:
            app = self.largest
            text += f"; the largest, {size(self.largest_bytes)}, is of application {app.app_id} "
            text += f"({app.name}), which is {app.status}"
        return f"{text}. Raise artifact.quota-bytes of the masters, or lower artifact.keep-ended"
