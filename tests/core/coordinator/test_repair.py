"""What is left of a damaged coordinator log: all that is not in the damage, and nothing deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.coordinator.codec import decode_segment, encode_segment
from gearpy.core.coordinator.log import EPOCH, CoordinatorMessage, CoordinatorState
from gearpy.core.coordinator.repair import SalvagedLog, salvage_log
from gearpy.core.coordinator.segments import files_of, files_that_count
from gearpy.errors import LogDamaged
from tests.core.coordinator_world import LOG, Store, a_message, a_writer, contents_of


def an_epoch(number: int, *, region: int = 0, is_dropped: bool = False) -> CoordinatorMessage:
    return a_message(f"{region}/{number}", None if is_dropped else "x", type_=EPOCH)


def a_log(*, compacted: int = 0) -> Store:
    """Return a log of epochs 1 to 5, of which the last two count.

    It was compacted last after so many of them; each other one has a file, and its end another.
    """
    appends = 0 if not compacted else compacted + max(0, compacted - 2)
    store, writer = Store(), a_writer(segments_max=appends or 100)
    store.run(writer.open())
    for number in range(1, 6):
        store.run(writer.append([a_message(f"0.{number}"), an_epoch(number)]))
        if number > 2:
            store.run(writer.append([an_epoch(number - 2, is_dropped=True)]))
    return store


def salvaged(store: Store) -> SalvagedLog:
    return store.run(salvage_log(LOG))


def epochs_of(state: CoordinatorState) -> list[str]:
    return [each.key for each in state.messages(EPOCH)]


def names_of(store: Store) -> list[str]:
    return [each.name for each in files_that_count(store.files)]


def test_a_log_that_is_not_there_has_nothing() -> None:
    assert salvaged(Store()) == SalvagedLog(
        damage=(), state=CoordinatorState(), lost_epochs=(), lost_messages=0, files=()
    )


@pytest.mark.parametrize("compacted", [0, 1, 3, 4, 5])
@pytest.mark.parametrize("how", ["gone", "empty", "cut", "flipped"])
def test_a_damaged_file_costs_at_most_the_epochs_in_it(how: str, compacted: int) -> None:
    """Whichever file it is: no other epoch is lost, and none comes back that was deleted."""
    whole = a_log(compacted=compacted)
    counting = epochs_of(contents_of(whole).state)
    for name in names_of(whole):
        store = Store(whole.files)
        data = store.files.pop(name)
        messages = decode_segment(data, name=name, log=LOG)
        changed = {"empty": b"", "cut": data[:-1], "flipped": data[:-1] + bytes([data[-1] ^ 1])}
        if how != "gone":
            store.files[name] = changed[how]
        if not messages and how in {"cut", "flipped"}:
            continue  # Only a header: it is in the next test.

        found = salvaged(store)

        in_file = {each.key for each in messages if each.type == EPOCH and each.values}
        assert [str(each.file) for each in found.damage] == [f"{LOG}/{name}"]
        assert set(found.lost_epochs) <= in_file & set(counting)
        assert {*epochs_of(found.state), *found.lost_epochs} == set(counting)
        if how in {"cut", "flipped"}:
            assert found.lost_messages == 1


def test_a_damaged_mark_costs_nothing() -> None:
    whole = a_log()
    (mark,) = (each.name for each in files_of(whole.files) if each.kind == "open")
    for data in (None, b"", whole.files[mark][:-1]):
        store = Store(whole.files)
        del store.files[mark]
        if data is not None:
            store.files[mark] = data

        found = salvaged(store)

        assert [each.file for each in found.damage] == [f"{LOG}/{mark}"]
        assert found.state == contents_of(whole).state


def test_what_cannot_be_gone_on_from_is_told() -> None:
    """A region whose epochs are all lost; another one keeps its own."""
    store, writer = Store(), a_writer()
    store.run(writer.open())
    for region in (0, 1):
        store.run(writer.append([an_epoch(1, region=region)]))
    del store.files[names_of(store)[1]]

    found = salvaged(store)

    assert found.lost_epochs == ("0/1",)
    assert found.hopeless_regions == (0,)
    assert epochs_of(found.state) == ["1/1"]


def test_without_any_file_the_mark_says_what_is_lost() -> None:
    store = a_log()
    names = names_of(store)
    for name in names:
        del store.files[name]

    found = salvaged(store)

    assert found.lost_epochs == ("0/4", "0/5")
    assert found.hopeless_regions == (0,)
    assert [each.file for each in found.damage] == [f"{LOG}/{name}" for name in names]


def test_what_was_appended_behind_the_mark_counts() -> None:
    """A crash came between the two; a reader finds it, too."""
    store = a_log()
    (mark,) = (each.name for each in files_of(store.files) if each.kind == "open")
    before = store.files[mark]
    writer = a_writer(1, nonce="11111111")
    store.run(writer.open())
    store.run(writer.append([an_epoch(6), an_epoch(4, is_dropped=True)]))
    newer = max(each.name for each in files_of(store.files) if each.kind == "open")
    store.files = {name: data for name, data in store.files.items() if name != newer}
    assert before
    base, _ = names_of(store)

    found = salvaged(store)

    assert epochs_of(found.state) == ["0/5", "0/6"]
    assert [each.file for each in found.damage] == [f"{LOG}/{newer}"]
    assert base in found.files


def test_a_log_of_another_version_is_left_alone() -> None:
    store = a_log()
    for name, data in store.files.items():
        store.files[name] = bytes([*data[:9], 9, *data[10:]])

    with pytest.raises(LogDamaged, match=r"format version 9, .*; use the gearpy that wrote it"):
        salvaged(store)


@given(st.data())
def test_what_is_salvaged_was_stored(data: st.DataObject) -> None:
    """The invariant: any damage of any files leaves a part of the log, with no epoch that left."""
    whole = a_log(compacted=data.draw(st.integers(0, 5)))
    every = {each for name in names_of(whole) for each in _messages(whole, name)}
    store = Store(whole.files)
    for name in data.draw(st.lists(st.sampled_from(sorted(store.files)), unique=True)):
        content = bytearray(store.files[name])
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        store.files[name] = bytes(content[: data.draw(st.integers(0, len(content)))])
    (mark,) = (each.name for each in files_of(store.files) if each.kind == "open")

    try:
        found = salvaged(store)
    except LogDamaged:
        return  # All of them seem to be of another version.

    assert {(each.type, each.key) for each in found.state.messages()} <= every
    if store.files[mark] == whole.files[mark]:
        assert {*epochs_of(found.state), *found.lost_epochs} == {"0/4", "0/5"}
    if not found.damage:
        assert found.state == contents_of(whole).state


def _messages(store: Store, name: str) -> set[tuple[str, str]]:
    decoded = decode_segment(store.files[name], name=name, log=LOG)
    assert encode_segment(decoded, name=name) == store.files[name]
    return {(each.type, each.key) for each in decoded}
