"""Snapshot files: chains of changes that are read as they were stored, or not at all."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups
from gearpy.storage import snapshot_files
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints, checkpoints_at
from gearpy.storage.snapshot_files import (
    FORMAT,
    HEAD,
    STATE,
    SnapshotChain,
    TaskPart,
    TaskSize,
    rebased_chunks,
    sections_once,
    snapshot_chunks,
)

ONE, TWO = TaskId(1, 0), TaskId(2, 7)
Changes = dict[bytes, bytes | None]
Delta = list[tuple[int, Changes]]


def a_part(task: TaskId = ONE, head: bytes = b"head", *deltas: Delta) -> TaskPart:
    def once(delta: Delta) -> Callable[[], Iterable[tuple[int, bytes]]]:
        left = iter([(group, msgspec.msgpack.encode(changes)) for group, changes in delta])
        return lambda: left

    return TaskPart(task=task, head=head, deltas=[once(delta) for delta in deltas])


def stored(
    store: Checkpoints,
    chunks: Iterable[bytes],
    *,
    name: str = "f",
    tasks: tuple[TaskId, ...] = (ONE,),
) -> SnapshotFile:
    location, checksum, size = store.save(name, chunks)
    return SnapshotFile(location=location, sha256=checksum, tasks=tasks, size_bytes=size)


def a_file(store: Checkpoints, *parts: TaskPart, name: str = "f") -> SnapshotFile:
    tasks = tuple(part.task for part in parts)
    return stored(store, snapshot_chunks(parts), name=name, tasks=tasks)


def contents(checkpoints: Checkpoints, files: Sequence[SnapshotFile]) -> dict[TaskId, Any]:
    """Return all that a chain holds in the end: heads and cells by key group."""
    with SnapshotChain(checkpoints, files) as chain:
        return {
            task: (
                chain.head(task),
                {
                    group: cells
                    for group in chain.groups(task)
                    if (cells := chain.cells(task, group))
                },
            )
            for task in chain.tasks
        }


def at_once(checkpoints: Checkpoints, files: Sequence[SnapshotFile]) -> dict[TaskId, Any]:
    heads, groups = dict[TaskId, bytes](), dict[TaskId, dict[int, Changes]]()
    for section in (each for file in files for each in sections_once(checkpoints, file)):
        if section.kind == HEAD:
            heads[section.task] = section.body
            continue
        cells = groups.setdefault(section.task, {}).setdefault(section.group, {})
        cells |= msgspec.msgpack.decode(section.body)
        for cell in [cell for cell, value in cells.items() if value is None]:
            del cells[cell]
    return {
        task: (head, {group: cells for group, cells in groups.get(task, {}).items() if cells})
        for task, head in heads.items()
    }


def plain(sections: Iterable[tuple[int, bytes]]) -> Delta:
    return [(group, msgspec.msgpack.decode(body)) for group, body in sections]


# -- what is stored is read ------------------------------------------------------------------


def test_heads_and_cells_come_back() -> None:
    store = MemoryCheckpoints()
    file = a_file(
        store,
        a_part(ONE, b"one", [(3, {b"a": b"1", b"b": None}), (5, {b"c": b""})], [(3, {b"a": b"2"})]),
        a_part(TWO, b""),
    )

    with SnapshotChain(store, [file]) as chain:
        assert chain.tasks == {ONE, TWO}
        assert (chain.head(ONE), chain.head(TWO)) == (b"one", b"")
        assert plain(chain.sections(ONE)) == [
            (3, {b"a": b"1", b"b": None}),
            (5, {b"c": b""}),
            (3, {b"a": b"2"}),
        ]
        assert [*chain.sections(TWO)] == []
        assert [chain.cells(ONE, group) for group in (3, 4, 5)] == [{b"a": b"2"}, {}, {b"c": b""}]
        assert (chain.groups(ONE), chain.groups(TWO)) == ([3, 5], [])
        assert chain.size(TWO) == TaskSize(0, 0, 0)
        assert chain.size(ONE) == TaskSize(3, 11 + 6 + 7, 3)


def test_of_two_files_the_later_counts() -> None:
    """Heads are whole in each file; cells are what has changed."""
    store = MemoryCheckpoints()
    files = [
        a_file(store, a_part(ONE, b"old", [(0, {b"a": b"1", b"b": b"1"})]), a_part(TWO), name="1"),
        a_file(store, a_part(ONE, b"new", [(0, {b"b": None, b"c": b"3"})]), name="2"),
    ]

    assert contents(store, files) == {
        ONE: (b"new", {0: {b"a": b"1", b"c": b"3"}}),
        TWO: (b"head", {}),
    }
    assert contents(store, files[::-1])[ONE] == (
        b"old",
        {0: dict.fromkeys((b"a", b"b", b"c"), b"1") | {b"c": b"3"}},
    )


def test_a_file_counts_for_the_tasks_that_it_is_listed_with() -> None:
    store = MemoryCheckpoints()
    both = a_file(store, a_part(ONE, b"1", [(0, {b"a": b"1"})]), a_part(TWO, b"2"), name="1")
    newer = a_file(store, a_part(ONE, b"3"), a_part(TWO, b"3", [(0, {b"b": b"3"})]), name="2")
    only = [replace(both, tasks=(ONE,)), replace(newer, tasks=(TWO,)), replace(both, tasks=(ONE,))]

    wanted = {ONE: (b"1", {0: {b"a": b"1"}}), TWO: (b"3", {0: {b"b": b"3"}})}
    assert contents(store, only) == wanted
    assert at_once(store, only) == wanted
    rebased = stored(store, rebased_chunks(store, only, []), name="3", tasks=(ONE, TWO))
    assert contents(store, [rebased]) == wanted
    assert contents(store, [replace(both, tasks=())]) == {}


def test_key_groups_that_were_taken_over_count_as_those_of_their_taker() -> None:
    """Nothing else of the file does, no head either; and a chain of them is written anew."""
    store = MemoryCheckpoints()
    three, four = TaskId(1, 3), TaskId(1, 4)
    cells: Delta = [(0, {b"a": b"1"}), (5, {b"b": b"1"}), (9, {b"c": b"1"})]
    old = a_file(store, a_part(ONE, b"old", cells), a_part(TWO, b"two", [(5, {b"d": b"1"})]))
    taken = (
        TakenGroups(task=three, source=ONE, via=ONE, first=0, last=4),
        TakenGroups(task=four, source=ONE, via=ONE, first=5, last=8),
        TakenGroups(task=four, source=TWO, via=TWO, first=5, last=8),
        TakenGroups(task=ONE, source=ONE, via=ONE, first=9, last=9),
    )
    heads = a_file(store, a_part(three, b"3"), a_part(four, b"4", [(5, {b"b": None})]), name="2")
    files = [replace(old, tasks=(three, four), taken=taken), heads]

    wanted = {three: (b"3", {0: {b"a": b"1"}}), four: (b"4", {5: {b"d": b"1"}})}
    assert contents(store, files) == wanted
    assert at_once(store, files) == wanted
    rebased = stored(store, rebased_chunks(store, files, []), name="3", tasks=(three, four))
    assert contents(store, [rebased]) == wanted


def test_a_file_that_is_read_once_is_verified_in_the_end() -> None:
    store = MemoryCheckpoints()
    file = a_file(store, a_part(ONE, b"1", [(0, {b"a": b"1"})]), a_part(TWO, b"2"))
    other = replace(file, sha256=sha256(b"other").hexdigest())

    sections = sections_once(store, other)
    begun = [next(sections) for _ in range(3)]
    with pytest.raises(SnapshotDamaged, match="stored was"):
        next(sections)
    with pytest.raises(SnapshotDamaged, match="no task 9"):
        [*sections_once(store, replace(file, tasks=(ONE, TaskId(9, 0))))]

    part = TakenGroups(task=ONE, source=ONE, via=ONE, first=0, last=0)
    taken = [*sections_once(store, replace(other, tasks=(ONE,), taken=(part,)))]

    assert [each.group for each in taken] == [0]
    assert [(each.kind, each.task) for each in begun] == [(HEAD, ONE), (STATE, ONE), (HEAD, TWO)]


def test_a_file_without_the_task_that_something_is_taken_from_is_damage() -> None:
    store = MemoryCheckpoints()
    taken = (TakenGroups(task=TWO, source=TWO, via=TWO, first=0, last=4),)
    file = replace(a_file(store, a_part(ONE)), tasks=(TWO,), taken=taken)

    with pytest.raises(SnapshotDamaged, match=r"there is no task 2\.7"):
        SnapshotChain(store, [file])
    with SnapshotChain(store, [replace(file, tasks=())]) as chain:
        assert chain.tasks == set()


def test_files_that_are_skimmed_are_verified_as_far_as_they_are_read() -> None:
    store = MemoryCheckpoints()
    parts = [a_part(ONE, b"one", [(0, {b"a": b"11111"})]), a_part(TWO, b"two", [(3, {b"b": b"2"})])]
    file = a_file(store, *parts)
    data = store.load(file.location)
    damaged = data.replace(b"11111", b"11211")
    location, _, size = store.save("g", [damaged])

    with SnapshotChain(store, [replace(file, location=location)], skims=True) as chain:
        assert (chain.head(ONE), chain.groups(ONE), chain.groups(TWO)) == (b"one", [0], [3])
        assert chain.cells(TWO, 3) == {b"b": b"2"}
        with pytest.raises(SnapshotDamaged, match="has changed"):
            chain.cells(ONE, 0)
    with SnapshotChain(store, [file], skims=True) as chain:
        assert chain.cells(ONE, 0) == {b"a": b"11111"}
    short, _, _ = store.save("h", [data[:-9]])
    for bytes_wanted in (size, 0):
        with pytest.raises(SnapshotDamaged):
            SnapshotChain(
                store, [replace(file, location=short, size_bytes=bytes_wanted)], skims=True
            )


@pytest.mark.parametrize("bit", [1, 128])
def test_no_label_of_a_skimmed_file_is_taken_for_another(bit: int) -> None:
    """Cells of a wrong key group would be left out, or read for another one, without a word."""
    store = MemoryCheckpoints()
    file = a_file(store, a_part(ONE, b"one", [(0, {b"a": b"1"})], [(7, {b"b": b"22"})]))
    data = store.load(file.location)
    bodies = [b"one", *(msgspec.msgpack.encode(each) for each in ({b"a": b"1"}, {b"b": b"22"}))]
    unread = {at for body in bodies for at in range(data.find(body), data.find(body) + len(body))}
    totals = len(data) - 20  # The checksum before them is compared with that of what they must be.

    for at in {*range(totals)} - unread:
        changed = bytearray(data)
        changed[at] ^= bit
        location, _, _ = store.save("g", [bytes(changed)])
        with pytest.raises(SnapshotDamaged):
            SnapshotChain(store, [replace(file, location=location)], skims=True)


def test_a_reader_of_some_tasks_verifies_the_rest_of_the_files_at_once() -> None:
    store = MemoryCheckpoints()
    cells: list[Delta] = [[(0, {b"a": b"1"})], [(0, {b"b": b"22222"})]]
    file = a_file(store, a_part(ONE, b"one", cells[0]), a_part(TWO, b"two", cells[1]))
    data = store.load(file.location)
    label = struct.pack(">BQI", STATE, TWO.packed(), 0)
    of_other_task = data.replace(label, struct.pack(">BQI", STATE, ONE.packed(), 0))
    other_content = data.replace(b"22222", b"22322")

    for damaged, reads in [(of_other_task, TWO), (other_content, ONE)]:
        location, _, _ = store.save("damaged", [damaged])
        with pytest.raises(SnapshotDamaged, match="checksum"):
            SnapshotChain(store, [replace(file, location=location)], reads=reads.__eq__)
    with SnapshotChain(store, [replace(file, location=location)], reads=TWO.__eq__) as chain:
        assert chain.cells(ONE, 0) == {b"a": b"1"}
        with pytest.raises(SnapshotDamaged, match="has changed"):
            chain.cells(TWO, 0)


def test_a_chain_longer_than_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "_OPEN_MAX", 2)
    store = MemoryCheckpoints()
    files = [
        a_file(store, a_part(ONE, b"%d" % at, [(at, {b"a": b"%d" % at})]), name=str(at))
        for at in range(5)
    ]

    assert contents(store, files)[ONE] == (b"4", {at: {b"a": b"%d" % at} for at in range(5)})


def test_portions_are_worth_a_write_each() -> None:
    big = bytes(snapshot_files.PORTION_BYTES)
    parts = [*(a_part(TaskId(1, at), b"x" * 100) for at in range(20_000)), a_part(TWO, big)]

    sizes = [len(chunk) for chunk in snapshot_chunks(parts)]

    assert len(big) in sizes
    assert len(sizes) < 50
    assert max(sizes) == len(big)


# -- damage ----------------------------------------------------------------------------------


@pytest.fixture
def whole() -> bytes:
    parts = [a_part(ONE, b"one", [(1, {b"a": b"1"})], [(2, {b"b": None})]), a_part(TWO, b"")]
    return b"".join(snapshot_chunks(parts))


def claims(data: bytes) -> Iterator[SnapshotFile]:
    """Return what manifests may say: with the size and without."""
    for size in (len(data), 0):
        checksum = sha256(data).hexdigest()
        yield SnapshotFile(location="f", sha256=checksum, tasks=(ONE, TWO), size_bytes=size)


def is_refused(data: bytes, file: SnapshotFile) -> bool:
    """Tell whether bytes are found to be damaged, before anything of them is given out."""
    store = MemoryCheckpoints()
    store.save("f", [data])
    try:
        SnapshotChain(store, [file]).close()
    except SnapshotDamaged as damage:
        return damage.location == "f"
    return False


def test_a_file_that_was_cut_off_is_refused(whole: bytes) -> None:
    for size in range(len(whole)):
        cut = whole[:size]
        for claim in (*claims(whole), *claims(cut)):
            assert is_refused(cut, claim), size


@pytest.mark.parametrize("pattern", [1, 2, 0x10, 0x80, 0x55, 0xFF])
def test_a_file_with_a_changed_byte_is_refused(whole: bytes, pattern: int) -> None:
    """Every byte; and by itself, if what changed it also made the manifest."""
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= pattern
        for claim in (*claims(whole), *claims(bytes(changed))):
            assert is_refused(bytes(changed), claim), at


def test_a_file_that_goes_on_behind_its_end_is_refused(whole: bytes) -> None:
    for more in (b"\0", whole):
        for claim in (*claims(whole), *claims(whole + more)):
            assert is_refused(whole + more, claim)


def test_a_file_with_other_sections_than_its_end_says_is_refused(whole: bytes) -> None:
    store = MemoryCheckpoints()
    header, section = 22, 21
    head = section + len(b"one")
    without_first = whole[:header] + whole[header + head :]
    twice = whole[: header + head] + whole[header:]
    short = a_file(store, a_part(ONE), name="short")
    other_end = whole[:-37] + store.load(short.location)[-37:]

    for data in (without_first, twice, other_end):
        assert all(is_refused(data, claim) for claim in claims(data))


def test_a_file_of_another_version_is_refused(
    whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, as it is no damage; what is in it may mean something else."""
    monkeypatch.setattr(snapshot_files, "FORMAT", FORMAT._replace(version=4))
    store = MemoryCheckpoints()
    store.save("f", [whole])

    with pytest.raises(SnapshotDamaged, match="format version 3, this gearpy reads version 4"):
        SnapshotChain(store, [next(claims(whole))])


def test_a_file_without_a_task_that_it_should_have_is_refused(whole: bytes) -> None:
    claim = next(claims(whole))
    wanted = SnapshotFile(location="f", sha256=claim.sha256, tasks=(ONE, TaskId(3, 0)))
    store = MemoryCheckpoints()
    store.save("f", [whole])

    with pytest.raises(SnapshotDamaged, match=r"there is no task 3\.0"):
        SnapshotChain(store, [wanted])


def test_what_changes_after_it_was_verified_is_found(tmp_path: Path) -> None:
    store = checkpoints_at(tmp_path)
    file = a_file(store, a_part(ONE, b"head", [(1, {b"a": b"1"})]))
    path, whole = tmp_path / "f", (tmp_path / "f").read_bytes()
    bodies = [at for at, _ in enumerate(whole) if 43 <= at < 47 or 68 <= at < 75]

    for at in bodies:
        for changed in (whole[:at] + b"?" + whole[at + 1 :], whole[:at]):
            path.write_bytes(whole)
            with SnapshotChain(store, [file]) as chain:
                path.write_bytes(changed)
                with pytest.raises(SnapshotDamaged, match="changed since it was verified"):
                    [chain.head(ONE), *chain.sections(ONE)]


def test_a_section_that_cannot_fit_is_refused_before_memory_is_taken(whole: bytes) -> None:
    size_at = 22 + 13
    huge = whole[:size_at] + (1 << 31).to_bytes(4, "big") + whole[size_at + 4 :]
    store = MemoryCheckpoints()
    store.save("f", [huge])

    with pytest.raises(SnapshotDamaged, match="a section of 2147483648 bytes does not fit"):
        SnapshotChain(store, [next(claims(huge))])


def test_too_much_in_one_piece_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is stored: nobody could read it again."""
    monkeypatch.setattr(snapshot_files, "SECTION_BYTES_MAX", 100)

    for part in (a_part(ONE, bytes(101)), a_part(ONE, b"", [(0, {b"a": bytes(101)})])):
        with pytest.raises(ConfigError, match=r"task 1\.0 holds 10\d bytes in one piece"):
            [*snapshot_chunks([part])]
    assert [*snapshot_chunks([a_part(ONE, bytes(100))])]


# -- rewriting -------------------------------------------------------------------------------


def test_a_rebased_file_stands_for_a_chain_and_the_changes_behind_it() -> None:
    store = MemoryCheckpoints()
    files = [
        a_file(store, a_part(ONE, b"1", [(0, {b"a": b"1", b"b": b"1"})]), a_part(TWO), name="1"),
        a_file(store, a_part(ONE, b"2", [(0, {b"a": None}), (9, {b"z": b"2"})]), name="2"),
    ]

    def changes() -> list[TaskPart]:
        return [a_part(ONE, b"3", [(9, {b"z": None}), (4, {b"c": b"3"})])]

    rebased = stored(store, rebased_chunks(store, files, changes()), name="3", tasks=(ONE, TWO))
    chained = a_file(store, *changes(), name="4")

    assert contents(store, [rebased]) == contents(store, [*files, chained])
    with SnapshotChain(store, [rebased]) as chain:
        assert plain(chain.sections(ONE)) == [(0, {b"b": b"1"}), (4, {b"c": b"3"})]
        assert chain.tasks == {ONE, TWO}


def test_what_holds_no_cells_cannot_be_rebased() -> None:
    store = MemoryCheckpoints()
    odd = TaskPart(task=ONE, head=b"", deltas=[lambda: [(0, b"\x93\x01\x02\x03")]])
    file = a_file(store, odd)

    for files, parts in (([file], []), ([], [odd])):
        with pytest.raises(SnapshotDamaged, match="no cells"):
            [*rebased_chunks(store, files, parts)]


def test_a_large_key_group_is_rebased_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "PORTION_BYTES", 1000)
    store = MemoryCheckpoints()
    cells: Changes = {b"%d" % at: bytes(100) for at in range(100)}
    file = a_file(store, a_part(ONE, b"", [(7, cells)]), name="1")

    rebased = stored(store, rebased_chunks(store, [file], []), name="2")

    assert contents(store, [rebased])[ONE] == (b"", {7: cells})
    with SnapshotChain(store, [rebased]) as chain:
        bodies = [body for _, body in chain.sections(ONE)]
        assert len(bodies) < 20
        assert max(map(len, bodies)) < 1200


def test_large_changes_are_put_aside_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "_SPOOL_BYTES", 100)
    store = MemoryCheckpoints()
    deltas: list[Delta] = [[(at % 3, {b"%d" % at: bytes(50)})] for at in range(30)]

    rebased = stored(store, rebased_chunks(store, [], [a_part(ONE, b"", *deltas)]))

    assert contents(store, [rebased])[ONE][1] == {
        group: {b"%d" % at: bytes(50) for at in range(group, 30, 3)} for group in range(3)
    }


def test_changes_that_fail_half_way_leave_nothing_open() -> None:
    def failing() -> Iterator[tuple[int, bytes]]:
        yield 0, b"\x80"
        raise OSError("no more")

    part = TaskPart(task=ONE, head=b"", deltas=[failing])

    for chunks in (snapshot_chunks([part]), rebased_chunks(MemoryCheckpoints(), [], [part])):
        with pytest.raises(OSError, match="no more"):
            MemoryCheckpoints().save("f", chunks)


_changes = st.dictionaries(
    st.sampled_from([b"a", b"b", b"c", b"\xff"]), st.none() | st.binary(max_size=4), max_size=4
)
_deltas = st.lists(st.lists(st.tuples(st.integers(0, 3), _changes), max_size=3), max_size=2)
_epochs = st.lists(
    st.dictionaries(
        st.sampled_from([ONE, TWO, TaskId(2**31, 2**32 - 1)]), st.tuples(st.binary(), _deltas)
    ),
    max_size=5,
)


@given(epochs=_epochs, data=st.data())
def test_a_chain_is_what_its_changes_add_up_to(
    epochs: list[dict[TaskId, tuple[bytes, list[Delta]]]], data: st.DataObject
) -> None:
    """The invariant: however much of it was rewritten, and wherever it was cut into files."""
    store, files = MemoryCheckpoints(), list[SnapshotFile]()
    model: dict[TaskId, tuple[bytes, dict[int, Changes]]] = {}
    for number, epoch in enumerate(epochs):
        parts = [a_part(task, head, *deltas) for task, (head, deltas) in epoch.items()]
        kept = data.draw(st.integers(0, len(files)), "files that are not rewritten")
        chunks = rebased_chunks(store, files[kept:], parts, keeps_deleted=kept > 0)
        tasks = {task for file in files[kept:] for task in file.tasks} | epoch.keys()
        files[kept:] = [stored(store, chunks, name=str(number), tasks=tuple(sorted(tasks)))]
        for task, (head, deltas) in epoch.items():
            groups = model.get(task, (b"", {}))[1]
            for group, changes in (each for delta in deltas for each in delta):
                groups.setdefault(group, {}).update(changes)
            model[task] = (head, groups)

    assert contents(store, files) == {
        task: (head, {group: left for group, cells in groups.items() if (left := living(cells))})
        for task, (head, groups) in model.items()
    }


def living(cells: Changes) -> Changes:
    return {cell: value for cell, value in cells.items() if value is not None}
