"""Opening the state of a task."""

import subprocess
import sys
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.state.open import StateSettings, heap_state, open_state
from tests.state.build import WallClock, changes_of


def test_state_in_memory_is_opened() -> None:
    state = open_state(StateSettings(), "app/1.0", WallClock(5), lambda: MIN_MS)
    state.value("total").set(1)

    assert len(changes_of(state)) == 1
    state.close()


def test_state_on_disk_is_opened_when_it_is_needed(tmp_path: Path) -> None:
    settings = StateSettings(backend="disk", folder=str(tmp_path))
    state = open_state(settings, "app/1.0", WallClock(), lambda: 0)
    total = state.value("total", ttl="10ms")
    assert list(tmp_path.iterdir()) == []

    total.set(1)
    assert (tmp_path / "app" / "1.0" / "data.mdb").exists()
    state.close()
    assert not (tmp_path / "app" / "1.0").exists()


def test_state_on_disk_needs_a_folder() -> None:
    with pytest.raises(ConfigError, match=r"set state\.folder"):
        open_state(StateSettings(backend="disk"), "app/1.0", WallClock(), lambda: 0)


def test_time_goes_on_from_the_watermark() -> None:
    state = open_state(StateSettings(), "app/1.0", WallClock(), lambda: 100)
    seen = state.value("seen", ttl="10ms")
    state.time_ms = 50
    seen.set("late")

    assert seen.get() is None


def test_examples_know_the_time() -> None:
    state = heap_state()
    state.value("seen", ttl="1h", clock="processing").set(1)

    assert state.value("seen", ttl="1h", clock="processing").get() == 1


def test_the_library_of_the_disk_backend_is_not_loaded_for_the_other_one() -> None:
    code = "import sys, gearpy.state.open; sys.exit('lmdb' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
