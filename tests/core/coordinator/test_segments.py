"""The protocol of the coordinator log: in every order of steps, and with a crash after each."""

import re
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.coordinator.segments import (
    CoordinatorLogFile,
    CoordinatorLogWriter,
    ListNames,
    Opening,
    Save,
    Step,
    files_of,
    files_that_count,
    newest_launch,
    read_log,
    run_steps,
)
from gearpy.errors import LogAbsent, LogDamaged, LogSuperseded, StoreAway
from tests.core.coordinator_world import (
    LOG,
    Launch,
    Store,
    World,
    a_message,
    a_writer,
    contents_of,
    explore,
    keys_of,
)


def opened(store: Store, launch: int = 1, **settings: object) -> CoordinatorLogWriter:
    writer = a_writer(launch, **settings)  # type: ignore[arg-type] # As `a_writer` takes them.
    store.run(writer.open())
    return writer


def append(store: Store, writer: CoordinatorLogWriter, *keys: str) -> None:
    for key in keys:
        store.run(writer.append([a_message(key)]))


def found(store: Store) -> set[str]:
    return keys_of(contents_of(store).state)


# -- two launches ----------------------------------------------------------------------------


def test_an_earlier_launch_is_fenced() -> None:
    store = Store()
    first = opened(store, 1)
    append(store, first, "a")
    second = opened(store, 2)

    for key in ("b", "c"):
        with pytest.raises(LogSuperseded, match=r"launch 1, opening 1 .* by launch 2, opening 1"):
            append(store, first, key)
    append(store, second, "d")

    assert found(store) == {"a", "d"}
    assert found(store) == keys_of(opened(store, 3).state)


def test_who_is_superseded_while_it_compacts_has_appended() -> None:
    """The append counts, and says so; it is the next one that is refused."""
    store = Store()
    first = opened(store, 1, segments_max=1)

    def interfere(step: Step) -> object:
        answer = store.do(step)
        if isinstance(step, Save) and step.name.startswith("base"):
            opened(store, 2)
        return answer

    run_steps(first.append([a_message("a")]), interfere)

    assert found(store) == {"a"}
    with pytest.raises(LogSuperseded):
        append(store, first, "b")
    assert found(store) == {"a"}


def test_a_tool_opens_after_the_app_master_and_before_the_next() -> None:
    """It uses the launch that it finds; so does one that opens the log twice."""
    store = Store()
    append(store, opened(store, 4), "a")
    assert newest_launch(store.files) == 4

    tool = opened(store, 4)
    append(store, tool, "b")

    assert tool.opening.number == 2
    assert keys_of(opened(store, 5).state) == {"a", "b"}
    with pytest.raises(LogSuperseded):
        append(store, tool, "c")


def test_a_log_that_is_away_takes_nothing_until_it_is_back() -> None:
    """Somebody has moved it; what was put in its place meanwhile is not read."""
    store = Store()
    writer = opened(store)
    append(store, writer, "a")
    before = dict(store.files)
    for files in ({}, {name: before[name] for name in before if name.startswith("open")}):
        store.files = files

        with pytest.raises(StoreAway, match="is not there any more"):
            append(store, writer, "b")

    store.files = before
    append(store, writer, "c")
    assert keys_of(opened(store, 2).state) == {"a", "b", "c"}


def a_world_of_two(*, segments_max: int = 2, keys: str = "bc") -> World:
    """Return an app master that appends, and another one that is launched meanwhile."""
    store = Store()
    first = opened(store, 1, segments_max=segments_max)
    append(store, first, "a")
    launches = [Launch(first, keys, is_open=True), Launch(a_writer(2, segments_max=1), "d")]
    return World(store, launches, known="a")


@pytest.mark.slow
def test_two_launches_in_every_order() -> None:
    """The second opens while the first appends and compacts; each state may be the last one."""
    assert explore(a_world_of_two) > 1000


@pytest.mark.long
def test_two_first_launches_in_every_order() -> None:
    def world() -> World:
        launches = [Launch(a_writer(each, segments_max=1), "ab"[each - 1]) for each in (1, 2)]
        return World(Store(), launches)

    assert explore(world) > 1000


@pytest.mark.long
def test_two_tools_in_every_order() -> None:
    """They may have chosen the same number; chance decides which of them counts."""

    def world() -> World:
        store = Store()
        append(store, opened(store, 1), "a")
        launches = [
            Launch(a_writer(1, nonce=nonce * 8), key) for nonce, key in zip("0f", "bc", strict=True)
        ]
        return World(store, launches, known="a")

    assert explore(world) > 1000


@given(st.lists(st.integers(0, 3), max_size=120), st.integers(1, 3))
def test_many_launches_in_any_order(order: Sequence[int], segments_max: int) -> None:
    """The invariant: acknowledged is found, and all later launches agree on the rest."""
    launches = [
        Launch(a_writer(launch, nonce=f"{at:08x}", segments_max=segments_max), f"{at}{at + 4}")
        for at, launch in enumerate((1, 2, 2, 3))
    ]
    world = World(Store(), launches)
    for at in order:
        if not launches[at].is_done:
            launches[at].step(world.store)
            world.check()


# -- a store that fails ----------------------------------------------------------------------


class FailingStore(Store):
    """Fails at one step, before or after it has done it; nobody can tell which."""

    def __init__(self, at: int, *, is_done: bool) -> None:
        super().__init__()
        self.left = at
        self._is_done = is_done

    def do(self, step: Step) -> object:
        self.left -= 1
        if self.left:
            return super().do(step)
        if self._is_done:
            super().do(step)
        raise OSError("no space left")


def work_on(store: Store) -> tuple[CoordinatorLogWriter, int]:
    """Open a log, append and compact, doing again what fails; count the appends that failed."""
    try:
        writer = opened(store, segments_max=2)
    except OSError:
        writer = opened(store, segments_max=2)
    failures = 0
    for key in "abcde":
        try:
            append(store, writer, key)
        except OSError:
            failures += 1
            store.run(writer.append([]))
    return writer, failures


@pytest.mark.parametrize("is_done", [False, True])
def test_a_store_that_fails_once_loses_nothing_and_doubles_nothing(*, is_done: bool) -> None:
    refused = 0
    for at in count(1):
        store = FailingStore(at, is_done=is_done)
        writer, failures = work_on(store)
        refused += failures
        has_failed, store.left = store.left <= 0, 0
        assert [each.key for each in contents_of(store).state.messages()] == [*"abcde"]
        assert contents_of(store).state == writer.state
        assert keys_of(opened(store, 2).state) == set("abcde")
        if not has_failed:
            break
    assert at > 20
    assert refused == 15, "an append fails at its save, listing and mark, and at nothing else"


def test_a_crash_at_any_step_loses_nothing() -> None:
    store, acknowledged = Store(), set[str]()

    def survive(step: Step) -> object:
        answer = store.do(step)
        assert acknowledged <= keys_of(opened(Store(store.files), 9).state)
        return answer

    for launch in (1, 2):
        writer = a_writer(launch, segments_max=2)
        run_steps(writer.open(), survive)
        for key in "abcde":
            run_steps(writer.append([a_message(f"{launch}{key}")]), survive)
            acknowledged.add(f"{launch}{key}")
    assert len(acknowledged) == 10


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_appends_that_failed_one_after_the_other_are_all_made_up_for(failures: int) -> None:
    store = FailingStore(0, is_done=False)
    writer = opened(store)
    for key in "abc"[:failures]:
        store.left = 1
        with pytest.raises(OSError, match="no space left"):
            append(store, writer, key)

    store.run(writer.append([]))

    assert [each.key for each in contents_of(store).history] == [*"abc"[:failures]]
    assert contents_of(store).state == writer.state


def test_what_cannot_be_dropped_is_dropped_with_the_next_base() -> None:
    store = FailingStore(0, is_done=False)
    writer = opened(store, segments_max=1)
    store.left = 7  # Save, list, mark, save the base, list, mark, drop.
    append(store, writer, "a")
    assert len(store.files) == 4

    append(store, writer, "b")

    assert len(store.files) == 2
    assert found(store) == {"a", "b"}


# -- a folder that is not as the log left it -------------------------------------------------


def a_log() -> Store:
    store = Store()
    append(store, opened(store), "a", "b", "c")
    return store


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_missing_file_is_damage(at: int) -> None:
    """Its name is told; of the newest one the mark knows."""
    store = a_log()
    names = [each.name for each in files_that_count(store.files)]
    del store.files[names[at]]

    with pytest.raises(LogDamaged, match=f"{LOG}/{names[at]} is damaged .* it is not there") as e:
        contents_of(store)
    assert e.value.file == f"{LOG}/{names[at]}"
    with pytest.raises(LogDamaged):
        opened(store, 2)


def test_a_missing_base_of_a_later_launch_is_damage() -> None:
    """To go back to the base of an earlier one would lose what was appended since."""
    store, later = a_log(), a_log()
    append(later, opened(later, 2), "d")
    store.files |= later.files
    del store.files["base-0000000002-0001-00000000-0000000001"]

    with pytest.raises(LogDamaged, match=r"base-0000000002-.*it is not there, and segment-0000"):
        contents_of(store)


@pytest.mark.parametrize("files", [1, 2, 3, 4])
def test_newest_files_that_are_missing_are_damage(files: int) -> None:
    """Up to all of them: what was acknowledged is not silently less."""
    store = a_log()
    names = [each.name for each in files_that_count(store.files)]
    for name in names[-files:]:
        del store.files[name]

    with pytest.raises(LogDamaged, match=r"it is not there, and open-.* says that it was stored"):
        contents_of(store)
    with pytest.raises(LogDamaged):
        opened(store, 2)


def test_a_missing_mark_is_damage() -> None:
    store = a_log()
    del store.files["open-0000000001-0001-00000000"]

    with pytest.raises(LogDamaged, match=r"open-0000.* it is not there, and segment-0000"):
        contents_of(store)


def test_whatever_is_damaged_is_never_read_as_less() -> None:
    """Every file is cut at every byte, and has every bit flipped: the same, or a refusal."""
    whole = a_log()
    names = [each.name for each in files_of(whole.files)]
    for name in names:
        data = whole.files[name]
        cut = [data[:size] for size in range(len(data))]
        bits = [1 << bit for bit in range(8)]
        flipped = [
            bytes([*data[:at], data[at] ^ bit, *data[at + 1 :]])
            for at in range(len(data))
            for bit in bits
        ]
        for changed in [*cut, *flipped, data + b"x"]:
            with pytest.raises(LogDamaged) as damage:
                contents_of(Store({**whole.files, name: changed}))
            assert damage.value.file == f"{LOG}/{name}"
            assert damage.value.offset <= len(changed)


def test_a_folder_of_former_times_is_refused() -> None:
    store = a_log()
    before = dict(store.files)
    append(store, opened(store, 4), "d")

    with pytest.raises(LogAbsent, match="by launch 4, and only one of launch 1 is there"):
        opened(Store(before), 5, known_launch=4)
    assert keys_of(opened(store, 5, known_launch=4).state) == {"a", "b", "c", "d"}


def test_what_a_launch_wrote_into_an_empty_folder_is_no_log() -> None:
    store, empty = a_log(), Store()
    empty.files = {name: data for name, data in store.files.items() if name.startswith("segment")}

    with pytest.raises(LogAbsent):
        opened(empty, 2, known_launch=1)


def test_a_changed_file_is_damage() -> None:
    """Whichever of those that count; those that do not are not even read."""
    for file in files_that_count(a_log().files):
        store = a_log()
        store.files[file.name] = store.files[file.name][:-1]
        with pytest.raises(LogDamaged, match=re.escape(f"{LOG}/{file.name} is damaged")):
            contents_of(store)

    store = a_log()
    store.files["segment-0000000000-0001-00000000-0000000009"] = b"nonsense"
    assert found(store) == {"a", "b", "c"}


def test_a_log_that_never_stands_still_is_not_read_for_ever() -> None:
    """Somebody would wait."""
    store, launches = a_log(), count(2)

    def interfere(step: Step) -> object:
        answer = store.do(step)
        if isinstance(step, ListNames):
            opened(store, next(launches))
        return answer

    with pytest.raises(LogDamaged, match="it is not there"):
        run_steps(read_log(LOG), interfere)
    assert next(launches) > 50


# -- names -----------------------------------------------------------------------------------


@given(
    st.builds(
        CoordinatorLogFile,
        st.builds(
            Opening,
            st.integers(0, 10**12),
            st.integers(1, 10**6),
            st.text("0123456789abcdef", min_size=8, max_size=8),
        ),
        st.integers(1, 10**12),
        st.sampled_from(["open", "base", "segment"]),
    )
)
def test_a_name_says_all(file: CoordinatorLogFile) -> None:
    file = file._replace(serial=0) if file.kind == "open" else file

    assert files_of([file.name]) == [file]


@given(st.text())
def test_other_names_say_nothing(name: str) -> None:
    assert all(each.name == name for each in files_of([name]))
