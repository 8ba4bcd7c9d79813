"""The share of its epochs of which a task records the input; it takes little of its time."""

import math
from typing import Final

#: From the start of the tasks on all epochs are recorded: so many, and for so long. After a failure
#: the records before it are read again in these, so what fails once more is recorded.
_SURE_EPOCHS: Final = 8
_SURE_MS: Final = 10_000
#: Recording takes so much of the time for which a task is busy, what stores it not counted ...
_OF_BUSY: Final = 0.04
#: ... or so much of all time, where a task is hardly busy.
_OF_ALL: Final = 0.005
#: One of so many epochs is recorded in any case.
EVERY_MAX: Final = 64
_NS_PER_MS: Final = 1_000_000


class RecordingShare:
    """Chooses the epochs of which a task records its input, by what that has cost it.

    It is one of 1, 2, 4 or more epochs, by their numbers: so tasks that choose alike, or for which
    it costs more, have epochs in common.
    """

    def __init__(self, now_ms: int) -> None:
        self.every = 1  #: One of so many epochs is recorded, when the first ones are over.
        self._sure_epochs = _SURE_EPOCHS
        self._sure_until_ms = now_ms + _SURE_MS
        self._need: float | None = None  # How many times the time that it may take it takes.

    def takes(self, epoch: int, now_ms: int) -> bool:
        if self._sure_epochs > 0 or now_ms < self._sure_until_ms:
            self._sure_epochs -= 1
            return True
        return epoch % self.every == 0

    def on_recorded(self, cost_ns: int, *, busy_ns: int, open_ms: int) -> None:
        """Take what it has cost to record an epoch."""
        allowed_ns = max((busy_ns - cost_ns) * _OF_BUSY, open_ms * _NS_PER_MS * _OF_ALL)
        if allowed_ns <= 0:
            return
        need = cost_ns / allowed_ns
        self._need = need if self._need is None else (self._need + need) / 2
        steps = math.ceil(math.log2(self._need)) if self._need > 1 else 0
        self.every = min(1 << steps, EVERY_MAX)
