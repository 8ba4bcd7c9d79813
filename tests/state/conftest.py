"""State of each backend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gearpy.state.keyed import KeyedState
from gearpy.state.stores.store import CellStore
from tests.state.build import BACKENDS, MakeStore, a_state, a_store


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    made: list[CellStore] = []

    def make_store() -> CellStore:
        made.append(a_store(request.param, tmp_path))
        return made[-1]

    yield make_store
    for store in made:
        store.close()


@pytest.fixture
def state(make: MakeStore) -> Iterator[KeyedState]:
    made = a_state(make())
    made.key = "ada"
    yield made
    made.close()
