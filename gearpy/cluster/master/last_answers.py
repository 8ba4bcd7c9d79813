"""Answers that app masters leave behind for clients that ask after the end."""

from collections import OrderedDict
from typing import Final

from gearpy.ids import AppId
from gearpy.messages.client import Refused
from gearpy.messages.cluster import GetLastAnswer, LastAnswer

_APPLICATIONS_MAX: Final = 20
_BYTES_MAX: Final = 64 * 1024 * 1024


class LastAnswers:
    """Keeps the last answers of the applications that ended last; a new master has none.

    Invariant: neither more applications nor more bytes are kept than fit, but one application is.

    Runs on: the master's turns.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[AppId, dict[tuple[str, str], LastAnswer]] = OrderedDict()

    def keep(self, message: LastAnswer) -> None:
        """Keep an answer, unless one of a later launch is there; drop the oldest."""
        known = self._kept.setdefault(message.app_id, {})
        key = message.kind, message.part
        earlier = known.get(key)
        if earlier is None or earlier.launch <= message.launch:
            known[key] = message
        self._kept.move_to_end(message.app_id)
        while len(self._kept) > 1 and self._is_too_much():
            self._kept.popitem(last=False)

    def answer(self, question: GetLastAnswer) -> LastAnswer | Refused:
        """Return an answer that was left behind."""
        found = self._kept.get(question.app_id, {}).get((question.kind, question.part))
        return found or Refused(
            reason=f"application {question.app_id} has ended, and what its app master knew is not "
            "known any more"
        )

    def _is_too_much(self) -> bool:
        sizes = (len(each.answer) for known in self._kept.values() for each in known.values())
        return len(self._kept) > _APPLICATIONS_MAX or sum(sizes) > _BYTES_MAX
