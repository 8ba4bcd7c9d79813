"""What a process that runs tasks changes about the interpreter; in one that has nothing else."""

import subprocess
import sys
from typing import Final

# The tests of this process do without: see `tests/conftest.py`.
_PROGRAM: Final = """
import gc
from gearpy.cluster.host.tuning import ProcessTuning

def frozen_of(what):
    gc.unfreeze()
    before = len(gc.get_objects())
    what()
    return gc.get_freeze_count(), before

made = []
frozen, before = frozen_of(lambda: made.append(ProcessTuning()))
again, _ = frozen_of(made[0].freeze)
made[0].restore()
print(frozen > before // 2, again > before // 2, gc.get_freeze_count())
"""

_FREEZING: Final = """
import gc
from gearpy.cluster.host.tuning import ProcessTuning

class Kept:
    pass

kept = Kept()
gc.freeze()
tunings = [ProcessTuning(), ProcessTuning()]
left = [Kept()]
left.append(left)
tunings[0].keep()
del left
for each in tunings:
    each.restore()
print(sum(isinstance(each, Kept) for each in gc.get_objects()))
gc.unfreeze()
print(sum(isinstance(each, Kept) for each in gc.get_objects()))
"""

_GROWING: Final = """
import gc
from gearpy.cluster.host.tuning import ProcessTuning

seen = []

def on_gc(phase, info):
    if phase == "start" and info["generation"] == 1:
        seen.append(sum(len(gc.get_objects(generation)) for generation in (0, 1)))

ProcessTuning()
gc.callbacks.append(on_gc)
kept = [[] for _ in range(400_000)]
print(len(seen) > 3, max(seen) < 70_000)
"""


def test_state_that_grows_is_looked_at_in_small_parts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _GROWING], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["True", "True"]


def test_what_lives_is_left_out_of_collections_until_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["True", "True", "0"]


def test_what_a_program_froze_stays_frozen() -> None:
    """It is left out of collections as before; garbage that was frozen since is collected."""
    done = subprocess.run(
        [sys.executable, "-c", _FREEZING], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["0", "1"]
