"""State of stored epochs as tables."""

import io
import json
import math
from pathlib import Path
from typing import Any, BinaryIO

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.cluster.states.stored import (
    METADATA,
    StoredStates,
    moment_of,
    rows_of,
    stored_state,
    stored_states,
    with_names,
)
from gearpy.core.coordinator.views import DagVersion, DagVersions
from gearpy.errors import ConfigError
from gearpy.state.keyed import KeyedState
from gearpy.storage.checkpoints import FolderCheckpoints, MemoryCheckpoints, checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog
from tests.cluster.state_build import CLOCK_MS, PREFIX, STORED_MS, a_kept_application
from tests.state.build import put

_MANY = 3000  # Keys; more than one to a key group.


def first(state: KeyedState) -> None:
    visits, pages = state.value("visits", coder="int", default=0), state.set("pages")
    for state.key, page in [("ada", "home"), ("bob", "home"), ("ada", "cart")]:
        visits.set(visits.get() + 1)
        pages.add(page)
    state.timers.event_time(9000)


def second(state: KeyedState) -> None:
    visits = state.value("visits", coder="int", default=0)
    state.key = "bob"
    visits.clear()
    state.key = "ada"
    visits.set(visits.get() + 1)


def counted(state: KeyedState) -> None:
    visits = state.value("visits", coder="int")
    for at in range(_MANY):
        state.key = f"visitor{at}"
        visits.set(at)


@pytest.fixture
def store() -> MemoryCheckpoints:
    made = MemoryCheckpoints()
    a_kept_application(made, [first, second])
    return made


def rows(states: StoredStates, state: str = "visits", **which: Any) -> dict[Any, Any]:
    table = states.table("Visits", state, **which)
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_a_table_is_of_the_newest_epoch_or_of_one_that_is_named(store: MemoryCheckpoints) -> None:
    states = StoredStates(store, PREFIX)

    assert rows(states) == {"ada": 3}
    assert rows(states, epoch=1) == {"ada": 2, "bob": 1}


def test_a_table_has_the_cells_of_all_key_groups() -> None:
    made = MemoryCheckpoints()
    a_kept_application(made, [counted])

    assert StoredStates(made, PREFIX).table("Visits", "visits").num_rows == _MANY


def test_a_table_says_what_it_is_of(store: MemoryCheckpoints) -> None:
    table = StoredStates(store, PREFIX).table("visits-1", "visits", epoch=1)

    assert json.loads(table.schema.metadata[METADATA]) == {
        "application": PREFIX,
        "step": "visits-1",
        "state": "visits",
        "epoch": 1,
        "region": 0,
        "clock_ms": CLOCK_MS,
        "stored_ms": STORED_MS,
        "exact": True,
    }


def test_all_states_of_all_steps_are_listed(store: MemoryCheckpoints) -> None:
    found = StoredStates(store, PREFIX).summaries()

    assert [(each.name, each.state, each.kind, each.cells) for each in found] == [
        ("Visits", "event_timers", "timers", 1),
        ("Visits", "pages", "set", 3),
        ("Visits", "visits", "value", 1),
    ]
    assert {each.step for each in found} == {"visits-1"}
    assert all(each.size_bytes for each in found)


def test_a_step_with_several_states_wants_one_named(store: MemoryCheckpoints) -> None:
    states = StoredStates(store, PREFIX)

    with pytest.raises(ConfigError, match="several states, pages, visits: name one with --state"):
        states.table("Visits")
    assert set(states.tables("1")) == {"pages", "visits"}
    assert states.table("Visits", "event_timers")["at_ms"].to_pylist() == [9000]


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ({"step": "Vists"}, r"no step 'Vists' that keeps something; there are: .*Visits"),
        ({"step": "Visits", "state": "vists"}, r"no state 'vists'; there are: .*visits"),
        ({"step": "Visits", "epoch": 9}, r"no epoch 9; there are: 1, 2"),
        ({"step": "files"}, "no complete epoch of step files"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    store: MemoryCheckpoints, which: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        StoredStates(store, PREFIX).table(**which)


def test_a_step_that_an_update_has_removed_is_told_so(store: MemoryCheckpoints) -> None:
    log = CoordinatorLog(
        store, PREFIX, launch=2, source="app master", wall_ms=lambda: STORED_MS, host="h"
    )
    (was,) = DagVersions(log.state).read()
    layout = {id_: place for id_, place in was.layout.items() if id_ != "visits-1"}
    log.append(DagVersions(log.state).write(DagVersion(2, "other", (), layout)))

    with pytest.raises(ConfigError, match=r"'Visits' that keeps .*: version 2 has removed it; "):
        StoredStates(store, PREFIX).table("Visits")


def test_a_step_of_a_chain_has_its_own_state_only() -> None:
    store = MemoryCheckpoints()

    def change(state: KeyedState) -> None:
        put(state.scope("sum-1").bulk("running", operator="sum"), {"ada": 3})
        put(state.scope("other-1").bulk("running", operator="sum"), {"ada": 4})

    a_kept_application(store, [change], is_whole=False)
    table = StoredStates(store, PREFIX).table("sum")

    assert table.select(["key", "value"]).to_pylist() == [{"key": "ada", "value": 3}]


def test_a_step_that_has_kept_nothing_yet_says_so() -> None:
    store = MemoryCheckpoints()
    a_kept_application(store, [lambda _: None])

    with pytest.raises(ConfigError, match="step Visits has kept nothing yet"):
        StoredStates(store, PREFIX).table("Visits")


def test_rows_are_shown_as_json() -> None:
    store = MemoryCheckpoints()

    def change(state: KeyedState) -> None:
        kept = state.value("kept")
        for state.key, value in [("ada", 1.5), ("bob", math.nan)]:
            kept.set(value)

    a_kept_application(store, [change])
    table = StoredStates(store, PREFIX).table("Visits")

    assert rows_of(table, key="bob")[0][0]["value"] == "nan"
    assert rows_of(table, limit=1)[1] == 2
    assert rows_of(table, key="nobody") == ([], 0)
    assert moment_of(table).state == "kept"


class _Counting(MemoryCheckpoints):
    read_bytes = 0

    def open(self, location: str) -> BinaryIO:
        store = self

        class Counted(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                found = super().read(size)
                store.read_bytes += len(found) if "/epochs/" in location else 0
                return found

        return Counted(super().open(location).read())


def test_the_files_of_a_step_are_read_once() -> None:
    """Their bytes are verified as they come: a large state is read as fast as it can be."""
    store = _Counting()
    files = a_kept_application(store, [counted, first])

    assert len(rows(StoredStates(store, PREFIX))) == _MANY + 2
    assert store.read_bytes == sum(each.size_bytes for each in files)


def test_a_folder_is_enough(tmp_path: Path) -> None:
    store: FolderCheckpoints = checkpoints_at(tmp_path)
    a_kept_application(store, [first])

    assert stored_state(str(tmp_path), "shop", "Visits", "visits").num_rows == 2
    assert stored_states(str(tmp_path), "3").summaries()
    with pytest.raises(ConfigError, match="is not there"):
        stored_state(str(tmp_path / "no"), "shop", "Visits")
    with pytest.raises(ConfigError, match="nothing of application 'shops'"):
        stored_state(str(tmp_path), "shops", "Visits")


@pytest.mark.parametrize(
    ("keeps", "names"),
    [
        ("n=count(), total=sum(price) by shop in tumbling 10 s", ["n", "total"]),
        ("count(), p95=quantile(0.95, ms, where=a function) in global", ["count", "p95"]),
        ("count() by shop", ["f0", "f1"]),
        ("n=count(), total=sum(price), mean(price)", ["f0", "f1"]),
        ("what its task keeps by shop", ["f0", "f1"]),
        ("", ["f0", "f1"]),
    ],
)
def test_parts_of_a_value_have_the_names_of_several_aggregates(
    keeps: str, names: list[str]
) -> None:
    values = [{"f0": 1, "f1": 2.0}, None]

    found = with_names(pa.table({"key": ["a", "b"], "value": values}), keeps)

    assert found["value"].to_pylist() == [dict(zip(names, (1, 2.0), strict=True)), None]
