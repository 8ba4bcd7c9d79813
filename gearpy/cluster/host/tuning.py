"""Tunes the interpreter for a process that runs tasks, and undoes it.

Measured: with Python's defaults a full garbage collection stops the tasks for some 10 ms
several times a second, because the records of a few batches are enough to start one; and
a busy task keeps the loop thread waiting for 5 ms.

Young objects that have survived are looked at once more, all that came since the last time. Where
state grows none of them is garbage, and that stops the tasks for as long as there are many. So it
is done often, for 50,000 or somewhat more, which costs no more in all. A full collection is as rare
as with 50,000 and Python's other defaults: after some six million new objects.
"""

import gc
import sys
from threading import Lock
from typing import ClassVar, Final

#: So long may a thread keep the interpreter while the loop thread waits.
_SWITCH_INTERVAL_S: Final = 0.001
#: So many new objects start a collection. Python's 700 is reached by less than one batch.
_THRESHOLD: Final = 10_000
#: So many such collections until what has survived them is looked at, and of these until all is.
_YOUNG: Final = 4
_OLD: Final = 120


class ProcessTuning:
    """Garbage collection and thread switching of this process; `restore` undoes it.

    There may be several, such as those of two clusters. When the last one is restored, in whatever
    order, the settings are again as the first one found them. Objects that a program
    had frozen itself stay frozen: Python cannot tell them from others, so all that live then do.

    Runs on: any thread.
    """

    _lock: ClassVar = Lock()
    _tuned: ClassVar[set["ProcessTuning"]] = set()
    _found: ClassVar[tuple[float, tuple[int, int, int]]]
    _found_frozen: ClassVar[bool] = False

    def __init__(self) -> None:
        with self._lock:
            if not self._tuned:
                ProcessTuning._found = (sys.getswitchinterval(), gc.get_threshold())
                ProcessTuning._found_frozen = gc.get_freeze_count() > 0
                gc.set_threshold(_THRESHOLD, _YOUNG, _OLD)
                sys.setswitchinterval(_SWITCH_INTERVAL_S)
            self._tuned.add(self)
        self.keep()

    def freeze(self, *, all_of_it: bool = True) -> None:
        """Collect garbage once, and leave living objects out of later runs; call after a load.

        Objects that are left out already are looked at as well, or ``all_of_it`` is False: so
        memory that is shared with other processes stays shared, and it takes a tenth of the time.
        """
        if all_of_it:
            gc.unfreeze()  # Objects left by an application that has ended meanwhile.
        gc.collect()
        gc.freeze()

    def keep(self) -> None:
        """Leave everything that lives now out of later collections, without one now."""
        gc.freeze()

    def restore(self) -> None:
        with self._lock:
            if self not in self._tuned:
                return
            self._tuned.remove(self)
            if self._tuned:
                return
            interval_s, threshold = self._found
            gc.set_threshold(*threshold)
            sys.setswitchinterval(interval_s)
        gc.unfreeze()
        if self._found_frozen:
            self.freeze()  # Without the lock: it calls finalizers.
