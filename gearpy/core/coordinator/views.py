"""Views of the coordinator log: they read and write the messages of each type.

A message that cannot be understood raises `ProtocolError`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.coordinator.log import EPOCH, CoordinatorMessage, StateView, draft
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import Layout, StepPlace
from gearpy.core.epoch.epochs import Manifest, decode_manifest, encode_manifest
from gearpy.errors import ProtocolError
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import TaskOffsets

SET_CONFIG: Final = "set-config"  # Key of the configuration -> its value.
SET_CHECKPOINT: Final = "set-checkpoint"  # Source task -> where its partitions are.
SET_CHANGELOG: Final = "set-changelog"  # Task -> its partition of the changelog.
DAG: Final = "dag"  # Version -> what the graph was.
#: "name" -> what it is called, "outcome" -> how it ended, "drain" -> that it was asked for.
APPLICATION: Final = "application"
_STEPS: Final = "steps"
#: Epochs with files that tasks have taken over have it: an earlier gearpy would read more of
#: them than counts.
_WITH_TAKEN: Final = 2


class EpochManifests(StateView):
    """View of the complete epochs; writes the messages of a new one."""

    def regions(self) -> list[int]:
        return sorted({_two_numbers(each, "/")[0] for each in self._state.messages(EPOCH)})

    def manifests(self, region: int) -> list[Manifest]:
        found: list[Manifest] = []
        for message in self._state.messages(EPOCH):
            place = _two_numbers(message, "/")
            if place[0] != region:
                continue
            data = message.understood().get("manifest")
            if not isinstance(data, bytes):
                raise _malformed(message, "it has no manifest")
            manifest = decode_manifest(data)
            if (manifest.region, manifest.epoch) != place:
                raise _malformed(
                    message, f"its manifest is of region {manifest.region}, epoch {manifest.epoch}"
                )
            found.append(manifest)
        return sorted(found, key=lambda each: each.epoch)

    def messages_for(
        self, manifest: Manifest, offsets: Iterable[TaskOffsets] = ()
    ) -> list[CoordinatorMessage]:
        places = SourcePlaces(self._state)
        values = {"manifest": encode_manifest(manifest)}
        epoch = draft(EPOCH, _epoch_key(manifest.region, manifest.epoch), values)
        if any(file.taken for file in manifest.snapshots):
            epoch = replace(epoch, version=_WITH_TAKEN)
        return [*(places.write(each, epoch=manifest.epoch) for each in offsets), epoch]

    def has(self, region: int, epoch: int) -> bool:
        return self._state.find(EPOCH, _epoch_key(region, epoch)) is not None

    def drop_messages(self, region: int, epoch: int) -> list[CoordinatorMessage]:
        if not self.has(region, epoch):
            return []
        return [draft(EPOCH, _epoch_key(region, epoch), None)]


class TaskPlaces(Struct, frozen=True, kw_only=True):
    """The places of the partitions of a source task at the end of an epoch. Samza: `Checkpoint`.

    ``offsets`` by partition, as in `TaskOffsets`. ``overridden`` are the partitions that a user has
    set since; they count until the next epoch is complete.
    """

    task: TaskId
    epoch: int
    offsets: Mapping[str, bytes]
    overridden: tuple[str, ...] = ()


class SourcePlaces(StateView):
    """View of the places of sources. Samza: `CheckpointManager`.

    What a restart goes back to is in the snapshots, not here; but an override here counts more.
    """

    def read(self, task: TaskId) -> TaskPlaces | None:
        """Return the places of a source; None if none were stored. Samza: `readLastCheckpoint`."""
        message = self._state.find(SET_CHECKPOINT, str(task))
        return None if message is None else _checkpoint_of(message)

    def read_all(self) -> list[TaskPlaces]:
        found = [_checkpoint_of(each) for each in self._state.messages(SET_CHECKPOINT)]
        return sorted(found, key=lambda each: each.task)

    def write(self, offsets: TaskOffsets, *, epoch: int) -> CoordinatorMessage:
        """Return the message to append when an epoch is complete. Samza: `writeCheckpoint`."""
        return _checkpoint_message(
            TaskPlaces(task=offsets.task_id, epoch=epoch, offsets=offsets.offsets)
        )

    def override(self, offsets: TaskOffsets, *, epoch: int | None = None) -> CoordinatorMessage:
        """Return the message after which a restart reads these partitions from other places.

        Partitions that are not named stay as they are. ``epoch`` is the one that the task's region
        goes back to; default: the one of its last checkpoint, or 0, the beginning.
        """
        found = self.read(offsets.task_id)
        last = found or TaskPlaces(task=offsets.task_id, epoch=0, offsets={})
        return _checkpoint_message(
            TaskPlaces(
                task=offsets.task_id,
                epoch=last.epoch if epoch is None else epoch,
                offsets={**last.offsets, **offsets.offsets},
                overridden=tuple(sorted({*last.overridden, *offsets.offsets})),
            )
        )

    def overrides(self, tasks: Iterable[TaskId], *, epoch: int) -> tuple[TaskOffsets, ...]:
        """Return the places that replace those in an epoch's snapshots; it uses them up."""
        found = [self.read(each) for each in sorted(set(tasks))]
        return tuple(
            TaskOffsets(
                task_id=each.task, offsets={name: each.offsets[name] for name in each.overridden}
            )
            for each in found
            if each is not None and each.overridden and each.epoch >= epoch
        )


class ChangelogPartitions(StateView):
    """View of the changelog's partitions: each task has its own.

    Invariant: a task keeps its partition, and no two have the same.
    Samza: `ChangelogPartitionManager`, and `JobModelManager`, which gives out new ones.
    """

    def read(self) -> dict[TaskId, int]:
        """Return the partition of each task. Samza: `readChangeLogPartitionMapping`."""
        found = self._state.messages(SET_CHANGELOG)
        mapping = {task_of(each.key, each): _number(each, "partition") for each in found}
        return dict(sorted(mapping.items()))

    def write(self, mapping: Mapping[TaskId, int | None]) -> list[CoordinatorMessage]:
        """Return the messages to append; None deletes. Samza: `writeChangeLogPartitionMapping`."""
        return [
            draft(SET_CHANGELOG, str(task), None if partition is None else {"partition": partition})
            for task, partition in sorted(mapping.items())
        ]

    def assign(self, tasks: Iterable[TaskId]) -> list[CoordinatorMessage]:
        """Return the messages to append so that each of these tasks has a partition.

        New tasks get those behind all that were given out; no other task's changes are in them.
        """
        known = self.read()
        new = sorted(set(tasks) - known.keys())
        first = max(known.values(), default=-1) + 1
        return self.write({task: first + at for at, task in enumerate(new)})


class ConfigView(StateView):
    """View of the configuration. Samza: `CoordinatorStreamSystemConsumer.getConfig`."""

    def read(self) -> dict[str, str]:
        return {each.key: _text(each, "value") for each in self._state.messages(SET_CONFIG)}

    def write(self, config: Mapping[str, str]) -> list[CoordinatorMessage]:
        """Return the messages that make this the configuration: only the keys that differ.

        The others are deleted.
        """
        known = self.read()
        changed = {key: value for key, value in config.items() if known.get(key) != value}
        return [
            *(draft(SET_CONFIG, key, None) for key in known if key not in config),
            *(draft(SET_CONFIG, key, {"value": changed[key]}) for key in sorted(changed)),
        ]


class ApplicationView(StateView):
    """View of the application's name, and of how it has ended."""

    @property
    def name(self) -> str:
        """The name of the application; empty if the log has none."""
        found = self._state.find(APPLICATION, "name")
        return "" if found is None else _text(found, "value")

    @property
    def succeeded_ms(self) -> int | None:
        found = self._state.find(APPLICATION, "outcome")
        return None if found is None else found.timestamp_ms

    def write(self, name: str) -> list[CoordinatorMessage]:
        if self.name == name:
            return []
        return [draft(APPLICATION, "name", {"value": name})]

    def end(self) -> list[CoordinatorMessage]:
        return [draft(APPLICATION, "outcome", {"value": "succeeded"})]


class DagVersion(NamedTuple):
    """A version of the graph: its hash, a line for each part of it, and the places of its steps."""

    version: int
    structural_hash: str
    description: tuple[str, ...]
    layout: Layout


class DagVersions(StateView):
    """View of the versions of the graph."""

    def read(self) -> list[DagVersion]:
        found: list[DagVersion] = []
        for message in self._state.messages(DAG):
            lines = message.understood().get("description")
            if not message.key.isdecimal() or not isinstance(lines, list):
                raise _malformed(message, "it has no version or description")
            text = tuple(map(str, lines))
            try:
                places = [
                    StepPlace(
                        ProcessorId(int(values["processor"])),
                        int(values["parallelism"]),
                        int(values["place"]),
                        StepSpec(
                            id=str(values["id"]),
                            name=str(values["name"]),
                            kind=str(values["kind"]),
                            keeps=str(values["keeps"]),
                            is_whole=bool(values["whole"]),
                        ),
                    )
                    for values in message.understood()[_STEPS]
                ]
            except (KeyError, TypeError, ValueError) as error:
                raise _malformed(message, f"its steps are none: {error!r}") from error
            layout = {place.step.id: place for place in places}
            found.append(DagVersion(int(message.key), _text(message, "hash"), text, layout))
        return sorted(found)

    def write(self, dag: DagVersion) -> list[CoordinatorMessage]:
        """Return the messages to append when a version begins to run; none if it is known."""
        steps = [
            {
                "processor": place.processor,
                "parallelism": place.parallelism,
                "place": place.place,
                "id": place.step.id,
                "name": place.step.name,
                "kind": place.step.kind,
                "keeps": place.step.keeps,
                "whole": place.step.is_whole,
            }
            for place in dag.layout.values()
        ]
        values: dict[str, Any] = {
            "hash": dag.structural_hash,
            "description": list(dag.description),
            _STEPS: steps,
        }
        known = self._state.find(DAG, str(dag.version))
        if known is not None and known.values == values:
            return []
        return [draft(DAG, str(dag.version), values)]


def task_of(key: str, message: CoordinatorMessage | None = None) -> TaskId:
    message = message or CoordinatorMessage(type="", key=key, values=None)
    return TaskId(*_two_numbers(message, "."))


def _epoch_key(region: int, epoch: int) -> str:
    return f"{region}/{epoch}"


def _two_numbers(message: CoordinatorMessage, separator: str) -> tuple[int, int]:
    one, _, two = message.key.partition(separator)
    if not (one.isascii() and one.isdigit() and two.isascii() and two.isdigit()):
        raise _malformed(message, f"its key is not two numbers with {separator!r} between")
    return int(one), int(two)


def _checkpoint_message(checkpoint: TaskPlaces) -> CoordinatorMessage:
    values = {
        "epoch": checkpoint.epoch,
        "offsets": dict(checkpoint.offsets),
        "override": list(checkpoint.overridden),
    }
    return draft(SET_CHECKPOINT, str(checkpoint.task), values)


def _checkpoint_of(message: CoordinatorMessage) -> TaskPlaces:
    offsets = message.understood().get("offsets")
    if not isinstance(offsets, dict) or not all(isinstance(v, bytes) for v in offsets.values()):
        raise _malformed(message, "its offsets are not bytes by partition")
    task, epoch = task_of(message.key, message), _number(message, "epoch")
    # A message has a list of overridden partitions, true for all, or nothing.
    named = message.understood().get("override") or []
    if named is True:
        named = sorted(offsets)
    if not isinstance(named, list) or not all(
        isinstance(each, str) and each in offsets for each in named
    ):
        raise _malformed(message, "it overrides partitions that it has no offsets of")
    return TaskPlaces(task=task, epoch=epoch, offsets=offsets, overridden=tuple(named))


def _number(message: CoordinatorMessage, name: str) -> int:
    value = message.understood().get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _malformed(message, f"its {name} is {value!r}")
    return value


def _text(message: CoordinatorMessage, name: str) -> str:
    value = message.understood().get(name)
    if not isinstance(value, str):
        raise _malformed(message, f"its {name} is {value!r}")
    return value


def _malformed(message: CoordinatorMessage, reason: str) -> ProtocolError:
    return ProtocolError(
        f"message {message.type} {message.key} of the coordinator log is malformed: {reason}"
    )
