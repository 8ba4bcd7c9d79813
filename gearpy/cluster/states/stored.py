"""State of stored epochs as tables: that of each step, exactly as at the end of an epoch.

It is read where it was stored, without the tasks and without a cluster.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.cluster.checkpoints.reading import StoredEpochs, find_application, open_store, plain
from gearpy.cluster.states.columns import Part, ShownClasses, StateColumns, tables_of
from gearpy.core.coordinator.views import DagVersions
from gearpy.core.dag.state_moves import StepPlace
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.type_variables import T
from gearpy.state.kinds.bulk import ROOT
from gearpy.state.stores.cells import Tag, runs_in
from gearpy.storage.changelog import rebuilt
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.snapshot_files import SnapshotChain, living_cells
from gearpy.wire.values.records import DEFAULT_REGISTRY, RecordRegistry

#: Epochs of an application that runs may go while they are read.
_LOOKS_MAX: Final = 5
#: Key of the metadata of a table: JSON that says which state it is, and of which moment.
METADATA: Final = b"gearpy"
_ENDS: Final = frozenset({"read", "write"})
#: State that gearpy keeps beside that of a step.
_BESIDE: Final = frozenset({"waiting"})
#: One of the aggregates in the text of what a step keeps.
_AGGREGATE: Final = re.compile(r"(?:(?P<name>\w+)=)?(?P<kind>\w+)\([^()]*\)(?:, )?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSummary:
    """A state of a step, with the number of its values and entries, and the bytes they take.

    ``kind`` and ``coder`` are those of its declaration; ``bulk`` is what a step keeps by itself,
    such as the counts of windows.
    """

    step: str
    name: str
    processor: int
    state: str
    kind: str
    coder: str
    cells: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMoment:
    """The moment that a table is of: the end of an epoch, and whose it is.

    ``clock_ms`` is event time, ``stored_ms`` wall time. What is not ``exact`` is no epoch: it was
    read while the tasks went on.
    """

    application: str
    step: str
    state: str
    epoch: int
    region: int
    clock_ms: int
    stored_ms: int
    exact: bool = True


class StoredStates:
    """Reads the keyed state of an application from its stored epochs."""

    def __init__(
        self, checkpoints: Checkpoints, prefix: str, *, classes: RecordRegistry = DEFAULT_REGISTRY
    ) -> None:
        self._checkpoints = checkpoints
        self._prefix = prefix
        self._classes = ShownClasses(classes)
        self._read()

    def _read(self) -> None:
        self._stored = StoredEpochs(self._checkpoints, self._prefix)
        versions = DagVersions(self._stored.state).read()
        self._graphs = {each.version: [*each.layout.values()] for each in versions}
        self._places = next(reversed(self._graphs.values()), [])

    def summaries(self, epoch: int | None = None) -> list[StateSummary]:
        def look() -> list[StateSummary]:
            found = list[StateSummary]()
            for manifest in self._stored.find(epoch):
                pids = {task.processor for file in manifest.chain for task in file.tasks}
                places = [each for each in self._places if each.processor in pids]
                for place, states in zip(places, self._states_of(manifest, places), strict=True):
                    found += (
                        StateSummary(
                            step=place.step.id,
                            name=place.step.name,
                            processor=place.processor,
                            state=name,
                            kind=each.tag.kind,
                            coder=each.tag.coder,
                            cells=len(each),
                            size_bytes=each.size_bytes,
                        )
                        for name, each in _named(place, states).items()
                    )
            return sorted(found, key=lambda each: (each.processor, each.step, each.state))

        return self._again(look)

    def table(self, step: str, state: str = "", *, epoch: int | None = None) -> pa.Table:
        """Return a state of a step as a table; its metadata have the `StateMoment`."""
        tables = self.tables(step, state, epoch=epoch)
        if len(tables) > 1:
            raise ConfigError(
                f"step {step} has several states, {', '.join(sorted(tables))}: "
                f"name one with --state NAME (state= in Python)"
            )
        return next(iter(tables.values()))

    def tables(
        self, step: str, state: str = "", *, epoch: int | None = None
    ) -> dict[str, pa.Table]:
        def look() -> dict[str, pa.Table]:
            place = self._place(step)
            kept = (
                each
                for each in self._stored.find(epoch)
                if place.processor in {t.processor for file in each.chain for t in file.tasks}
            )
            if (manifest := next(kept, None)) is None:
                raise ConfigError(
                    f"{self._prefix} has no complete epoch of step {place.step.name} yet"
                )
            (states,) = self._states_of(manifest, [place])
            columns = _named(place, states)
            wanted = _wanted(columns, state, f"step {place.step.name or place.step.id}")
            tables = dict[str, pa.Table]()
            for name in wanted:
                moment = StateMoment(
                    application=self._prefix,
                    step=place.step.id,
                    state=name,
                    epoch=manifest.epoch,
                    region=manifest.region,
                    clock_ms=manifest.clock_ms,
                    stored_ms=self._stored.summary(manifest).stored_ms,
                )
                metadata = {METADATA: json.dumps(asdict(moment))}
                table = with_names(columns[name].table(), place.step.keeps)
                tables[name] = table.replace_schema_metadata(metadata)
            return tables

        return self._again(look)

    # -- one step --------------------------------------------------------------------------

    def _place(self, step: str) -> StepPlace:
        places = [each for each in self._places if each.step.keeps]
        by_id = [each for each in places if each.step.id == step]
        named = by_id or [each for each in places if step == each.step.name]
        of_processor = [each for each in places if step == str(each.processor)]
        # A source and a sink of the same processor keep nothing by key.
        inner = [each for each in of_processor if each.step.kind not in _ENDS]
        found = named or inner or of_processor
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.step.id for each in found)
            raise ConfigError(f"several steps are {step!r}: name one by its id: {ids}")
        there = ", ".join(f"{each.step.name} ({each.step.id})" for each in places)
        had = [
            version
            for version, before in self._graphs.items()
            if any(step in {each.step.id, each.step.name} for each in before if each.step.keeps)
        ]
        later = [version for version in self._graphs if had and version > had[-1]]
        since = f": version {later[0]} has removed it" if later else ""
        raise ConfigError(
            f"{self._prefix} has no step {step!r} that keeps something{since}; "
            f"there are: {there or 'none'}; 'gear state list' shows them"
        )

    def _states_of(
        self, manifest: Manifest, places: Sequence[StepPlace]
    ) -> list[list[StateColumns]]:
        own = {each.processor for each in places}

        def look(chain: SnapshotChain) -> list[list[StateColumns]]:
            with chain:
                found = list[list[StateColumns]]()
                for place in places:
                    tasks = sorted(t for t in chain.tasks if t.processor == place.processor)
                    parts = (part for task in tasks for part in _parts_of(chain, task))
                    mine = (each for each in parts if _is_of(Tag.decode(each[1].table), place))
                    found.append(tables_of(mine, self._classes))
                return found

        def is_own(task: TaskId) -> bool:
            return task.processor in own

        try:
            return look(SnapshotChain(self._checkpoints, manifest.chain, reads=is_own))
        except SnapshotDamaged:
            return look(self._chain(manifest))

    # -- files -----------------------------------------------------------------------------

    def _chain(self, manifest: Manifest) -> SnapshotChain:
        """Open the files of an epoch; where one is damaged, the changelog stands for them."""
        try:
            return SnapshotChain(self._checkpoints, manifest.chain)
        except SnapshotDamaged as damage:
            if not manifest.changelog:
                raise
            tasks = {task for file in manifest.snapshots for task in file.tasks}
            heads, state = rebuilt(self._checkpoints, manifest.snapshots, tasks, damage)
            heads.close()
            return state

    def _again(self, look: Callable[[], T]) -> T:
        for _ in range(_LOOKS_MAX - 1):
            before = self._stored.manifests
            try:
                return look()
            except SnapshotDamaged:
                self._read()
                if self._stored.manifests == before:
                    raise
        return look()


def stored_states(
    folder: str | Path,
    application: str,
    *,
    cluster: str | None = None,
    classes: RecordRegistry = DEFAULT_REGISTRY,
) -> StoredStates:
    """Open the stored epochs of an application, to look at the state of its steps.

    Args:
        folder: the checkpoint store: a folder or URL, as ``checkpoint.folder``; or the folder of a
            run that can be resumed.
    """
    store = open_store(str(folder), named_by="the first argument")
    try:
        prefix = find_application(store, application, cluster=cluster)
    except OSError as error:
        raise ConfigError(f"checkpoint store {folder} cannot be read: {error}") from error
    return StoredStates(store, prefix, classes=classes)


def stored_state(
    folder: str | Path, application: str, step: str, state: str = "", *, epoch: int | None = None
) -> pa.Table:
    """Return the state of a step, as it was at the end of a stored epoch, as an Arrow table.

    No cluster is needed, nor the program; without the program fields of its classes have numbers.

    Args:
        folder: the checkpoint store: a folder or URL.
        application: its number or name.
        step: its name, its id, or the number of its processor.
        state: which of its states; not needed where there is one.
        epoch: which of its stored epochs; the newest by default.

    Raises:
        ConfigError: there is no such store, application, step, state or epoch.
        SnapshotDamaged: a file of the epoch is missing, or not what was stored.
    """
    return stored_states(folder, application).table(step, state, epoch=epoch)


def moment_of(table: pa.Table) -> StateMoment:
    return StateMoment(**json.loads(table.schema.metadata[METADATA]))


def rows_of(
    table: pa.Table, *, key: str | None = None, limit: int | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Return the first rows of a table as JSON has them, and how many there are."""
    if key is not None:
        keys = table.column(0).to_pylist()
        table = table.filter(
            pa.array(
                [
                    (each if isinstance(each, str) else json.dumps(plain(each), ensure_ascii=False))
                    == key
                    for each in keys
                ],
                pa.bool_(),
            )
        )
    rows = table if limit is None else table.slice(0, limit)
    return [_finite(plain(each)) for each in rows.to_pylist()], table.num_rows


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return repr(value) if isinstance(value, float) and not isfinite(value) else value


def with_names(table: pa.Table, keeps: str) -> pa.Table:
    """Give the parts of a value the names that the program has for its aggregates.

    They are in the text of what the step keeps, such as ``n=count(), total=sum(price) by shop``.
    """
    names, at = list[str](), 0
    while (found := _AGGREGATE.match(keeps, at)) is not None:
        names.append(found["name"] or found["kind"])
        at = found.end()
    if "value" not in table.schema.names or len(names) < 2:  # noqa: PLR2004 - one is the value
        return table
    place = table.schema.get_field_index("value")
    column = table.column(place).combine_chunks()
    numbered = [f"f{at}" for at in range(len(names))]
    if not pa.types.is_struct(column.type) or [each.name for each in column.type] != numbered:
        return table
    mask = column.is_null() if column.null_count else None
    named = pa.StructArray.from_arrays(column.flatten(), names, mask=mask)
    return table.set_column(place, "value", named)


def _parts_of(chain: SnapshotChain, task: TaskId) -> Iterator[Part]:
    for group in chain.groups(task):
        for run in runs_in(living_cells(chain.bodies(task, group))):
            yield group, run


def _is_of(tag: Tag, place: StepPlace) -> bool:
    first = next((name for name in tag.path if not name.startswith("#")), "")
    return place.step.is_whole or first == place.step.id


def _name_of(tag: Tag, place: StepPlace) -> str:
    names = [name for name in tag.path if name != ROOT]
    own = names if place.step.is_whole else names[1:]
    if tag.kind == "timers":
        own = [*own[:-1], f"{own[-1].lstrip('#')}_timers"]
    return "/".join(own)


def _named(place: StepPlace, states: Sequence[StateColumns]) -> dict[str, StateColumns]:
    return {_name_of(each.tag, place): each for each in states}


def _wanted(columns: Mapping[str, StateColumns], state: str, where: str) -> list[str]:
    """Return the names of the states to show: that of the user, or those of the step itself."""
    if state:
        if state not in columns:
            there = ", ".join(sorted(columns)) or "none, it has kept nothing yet"
            raise ConfigError(f"{where} has no state {state!r}; there are: {there}")
        return [state]
    own = [
        name
        for name, each in columns.items()
        if each.tag.kind != "timers" and name.rpartition("/")[2] not in _BESIDE
    ]
    if not (own or columns):
        raise ConfigError(f"{where} has kept nothing yet")
    return own or sorted(columns)
