"""View of the versions of the program that an application has had."""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.coordinator.log import CoordinatorMessage, StateView, draft
from gearpy.core.epoch.epochs import Manifest, decode_manifest, encode_manifest
from gearpy.errors import ProtocolError
from gearpy.messages.client import Artifact

_VERSION: Final = "version"  # Number -> the program, and what became of it.

#: "waiting" for its event time; "preparing": the one before runs; "trial": it runs, and may have
#: to give way; "running"; "replaced" by a later one; "failed": it never began, or its trial has
#: failed.
VersionState: TypeAlias = Literal["waiting", "preparing", "trial", "running", "replaced", "failed"]


class ProgramVersion(Struct, frozen=True, kw_only=True):
    """A version of the program of an application; its number is that of its graph.

    Attributes:
        number: 0 as it was submitted.
        state: what became of it.
        reason: why it was asked for, or has failed.
        epoch: the newest epoch that it has begun with; 0: it began from the beginning.
        first: the number from which on epochs are its own; 0: it never began, or an older gearpy
            has begun it.
        base: while it is on trial, the epochs that the version before goes back to.
        base_of: the number of that version.
        kept: the regions that the change did not touch; their epochs are those of before.
        at_event_ms: the event time at which it takes over; None: as soon as it can.
        executors: how many share its tasks; 0: none gets more tasks than one has had.
    """

    number: int
    artifact: Artifact
    change: str
    by: str = ""
    at_ms: int = 0
    state: VersionState = "preparing"
    reason: str = ""
    epoch: int = 0
    first: int = 0
    base: tuple[Manifest, ...] = ()
    base_of: int = 0
    kept: tuple[int, ...] = ()
    at_event_ms: int | None = None
    executors: int = 0


class Versions(StateView):
    """View of the versions; a log without any is of an application that was never changed."""

    def read(self) -> list[ProgramVersion]:
        found: list[ProgramVersion] = []
        for message in self._state.messages(_VERSION):
            values = message.understood()
            try:
                version = ProgramVersion(
                    number=int(message.key),
                    artifact=msgspec.convert(values["program"], Artifact),
                    change=str(values["change"]),
                    by=str(values["by"]),
                    at_ms=int(values["at_ms"]),
                    state=msgspec.convert(values["state"], VersionState),
                    reason=str(values["reason"]),
                    epoch=int(values["epoch"]),
                    first=int(values.get("first", 0)),
                    base=tuple(decode_manifest(each) for each in values["base"]),
                    base_of=int(values["base_of"]),
                    kept=tuple(map(int, values.get("kept", ()))),
                    at_event_ms=msgspec.convert(values.get("at_event_ms"), int | None),
                    executors=int(values.get("executors", 0)),
                )
            except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
                raise ProtocolError(
                    f"version {message.key} of the coordinator log is malformed: {error!r}"
                ) from error
            found.append(version)
        return sorted(found, key=lambda each: each.number)

    @property
    def current(self) -> ProgramVersion | None:
        return next((each for each in self.read() if each.state in {"trial", "running"}), None)

    @property
    def waiting(self) -> ProgramVersion | None:
        return next((each for each in self.read() if each.state == "waiting"), None)

    def of_epoch(self, epoch: int) -> ProgramVersion | None:
        """Return the version that an epoch ended in, or was given up in, if it is known."""
        begun = [each for each in self._begun() if (each.first or each.epoch + 1) <= epoch]
        return begun[-1] if begun else None

    def on_state(self, epoch: int) -> ProgramVersion | None:
        """Return the newest version that may go on from a stored epoch, if it is known."""
        begun = [each for each in self._begun() if each.epoch <= epoch]
        return begun[-1] if begun else None

    def write(self, version: ProgramVersion) -> CoordinatorMessage:
        values: dict[str, Any] = {
            "program": msgspec.json.decode(msgspec.json.encode(version.artifact)),
            "change": version.change,
            "by": version.by,
            "at_ms": version.at_ms,
            "state": version.state,
            "reason": version.reason,
            "epoch": version.epoch,
            "first": version.first,
            "base": [encode_manifest(each) for each in version.base],
            "base_of": version.base_of,
            "kept": list(version.kept),
            "at_event_ms": version.at_event_ms,
            "executors": version.executors,
        }
        return draft(_VERSION, str(version.number), values)

    def _begun(self) -> Iterator[ProgramVersion]:
        run = {"trial", "running", "replaced"}
        return (each for each in self.read() if each.first or each.state in run)

    def end_unfinished(self, reason: str) -> list[CoordinatorMessage]:
        return [
            self.write(replace(each, state="failed", reason=reason))
            for each in self.read()
            if each.state == "preparing"
        ]
