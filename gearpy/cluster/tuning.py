"""What a process that runs tasks changes about the interpreter, and changes back.

Measured: with Python's defaults a full garbage collection stops the tasks for some 10 ms
several times a second, because the records of a few batches are enough to start one; and
a busy task keeps the loop thread waiting for 5 ms.
"""

import gc
import sys

from gearpy.config.schema import Config

__all__ = ["ProcessTuning"]


class ProcessTuning:
    """Garbage collection and thread switching of this process; `restore` undoes it.

    Runs on: any thread.
    """

    def __init__(self, config: Config) -> None:
        self._found_interval_s = sys.getswitchinterval()
        self._found_threshold = gc.get_threshold()
        sys.setswitchinterval(config.transport.gil_switch_interval_us / 1e6)
        _, young, old = self._found_threshold
        gc.set_threshold(config.gc_threshold_objects, young, old)
        self.freeze()

    def freeze(self) -> None:
        """Leave everything that lives now out of later collections; call when much was loaded."""
        gc.collect()
        gc.freeze()

    def restore(self) -> None:
        """Go back to what was found."""
        gc.unfreeze()
        gc.set_threshold(*self._found_threshold)
        sys.setswitchinterval(self._found_interval_s)
