"""Answers that app masters leave behind, for clients that ask when they are gone."""

from collections import OrderedDict
from typing import Final

from msgspec.structs import replace

from gearpy.ids import AppId
from gearpy.messages.client import Refused
from gearpy.messages.cluster import GetLastAnswer, LastAnswer

_ENDED_MAX: Final = 20
_LIVING_MAX: Final = 1_000
_BYTES_MAX: Final = 64 * 1024 * 1024


class LastAnswers:
    """Keeps the last answers of running applications, and of the ones that ended last.

    A new master has none.

    Invariant: neither more applications nor more bytes are kept than fit, but one application is;
    how many run has no influence on what is kept of those that have ended.

    Runs on: the master's turns.
    """

    def __init__(self) -> None:
        self._living = _Kept(_LIVING_MAX)
        self._ended = _Kept(_ENDED_MAX)

    def keep(self, message: LastAnswer, *, at_ms: int, has_ended: bool) -> None:
        kept = self._ended if has_ended else self._living
        kept.put(replace(message, at_ms=at_ms))

    def on_ended(self, app_id: AppId) -> None:
        for each in self._living.take(app_id):
            self._ended.put(each)

    def answer(self, question: GetLastAnswer) -> LastAnswer | Refused:
        found = self._ended.find(question) or self._living.find(question)
        return found or Refused(
            reason=f"application {question.app_id} has ended, and what its app master knew is not "
            "known any more"
        )


class _Kept:
    """Answers of some applications; those that were told longest ago are dropped first."""

    def __init__(self, applications_max: int) -> None:
        self._applications_max = applications_max
        self._answers = OrderedDict[AppId, dict[tuple[str, str], LastAnswer]]()
        self._bytes = 0

    def put(self, message: LastAnswer) -> None:
        known = self._answers.setdefault(message.app_id, {})
        self._answers.move_to_end(message.app_id)
        key = message.kind, message.part
        earlier = known.get(key)
        if earlier is not None:
            # A later launch, or a last word, is better.
            if (earlier.launch, earlier.is_last) > (message.launch, message.is_last):
                return
            self._bytes -= len(earlier.answer)
        known[key] = message
        self._bytes += len(message.answer)
        while len(self._answers) > 1 and (
            len(self._answers) > self._applications_max or self._bytes > _BYTES_MAX
        ):
            self.take(next(iter(self._answers)))

    def take(self, app_id: AppId) -> list[LastAnswer]:
        taken = [*self._answers.pop(app_id, {}).values()]
        self._bytes -= sum(len(each.answer) for each in taken)
        return taken

    def find(self, question: GetLastAnswer) -> LastAnswer | None:
        return self._answers.get(question.app_id, {}).get((question.kind, question.part))
