"""Records in quarantine of runs, while they run and when they have ended."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from gearpy.clocks import wall_ms
from gearpy.cluster.client.client import RunningApplication
from gearpy.cluster.embedded.run_folder import (
    NOTE,
    RECORDS,
    STORE,
    encode_records,
    read_note,
    run_name_of,
    stored_state,
)
from gearpy.core.coordinator.quarantine import KeptQuarantine, KeptRecord
from gearpy.errors import ConfigError, GearpyError, SubmitRefused
from gearpy.messages.client import ListQuarantined, QuarantinedRecord
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch
from gearpy.storage.folder.local import LocalFolder
from gearpy.views import text

_SOURCE: Final = "gear quarantine"
_NUMBERS_MAX: Final = 20  # In an error text.


class StoredQuarantine:
    """The records in quarantine in the folder of a run that does not run.

    Raises:
        ConfigError: there is no such folder.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._disk = LocalFolder(path, private=True)
        self._path, self._name = path, name
        if not any((path / each).is_file() for each in (NOTE, RECORDS)):
            raise ConfigError(
                f"{path} is no folder of a run: 'gear run --resume NAME' makes one, and the "
                "summary of a run without a name tells where its records are"
            )
        self._note = read_note(self._disk)

    def records(self) -> list[KeptRecord]:
        note, lines = self._note, self._disk.read(RECORDS)
        if note is not None and (lines is None or not note.finished_ms):
            _, state = stored_state(checkpoints_at(self._path / STORE), note)
            return KeptQuarantine(state).read()
        try:
            found = [
                msgspec.json.decode(each, type=QuarantinedRecord)
                for each in (lines or b"").splitlines()
            ]
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self._path / RECORDS} is damaged: {error}") from error
        return [KeptRecord(record=each) for each in found]

    def chosen(self, numbers: Sequence[int]) -> list[KeptRecord]:
        """Return the records of these numbers; all without any."""
        known = {each.record.number: each for each in self.records()}
        if unknown := sorted({*numbers} - known.keys()):
            raise SubmitRefused(
                f"no record {_listed(unknown)} of run {self._name} is in quarantine; there: "
                f"{_listed(sorted(known)) or 'none'}"
            )
        return [known[number] for number in sorted({*numbers} or known)]

    def want(self, numbers: Sequence[int]) -> list[QuarantinedRecord]:
        """Let the next start of the run give records back to their steps; return them."""
        if self._note is None:
            raise SubmitRefused(
                f"the run that has left {self._path} has no name, so it cannot be resumed, and "
                "nothing can take its records: run the program with --resume NAME the next time"
            )
        if self._note.finished_ms:
            raise SubmitRefused(
                f"run {self._name} has finished, and its steps take nothing more: correct the "
                "program, and run it once more under another name"
            )
        self._disk.lock()
        try:
            chosen = [each.record for each in self.chosen(numbers)]
            whole = [each for each in chosen if each.value and each.error.task]
            lost = [each.number for each in chosen if each not in whole]
            if lost and (numbers or not whole):
                raise SubmitRefused(
                    f"{_listed(lost)} cannot be given back: so large a record is kept as text "
                    "alone, or the program has its step no more; read it once more at its source"
                )
            store = checkpoints_at(self._path / STORE)
            prefix, _ = stored_state(store, self._note)
            log = CoordinatorLog(
                store,
                prefix,
                launch=newest_launch(store, prefix),
                source=_SOURCE,
                wall_ms=wall_ms,
            )
            view = KeptQuarantine(log.state)
            log.append(view.write(each, is_wanted=True) for each in whole)
            return whole
        finally:
            self._disk.unlock()


class OwnQuarantine:
    """Keeps the records in quarantine of a run without a name, in a folder of their own."""

    def __init__(self, running: RunningApplication, runs_folder: str) -> None:
        self._running = running
        self._runs = Path(runs_folder).expanduser()
        self._disk: LocalFolder | None = None
        self._known = 0  #: The number of the newest one that is written.
        self._counted = 0

    def on_progress(self, summary: ApplicationSummary) -> None:
        """Write those that are new; while the folder cannot be written to, they wait."""
        if summary.progress.quarantined_records != self._counted:
            with suppress(OSError, GearpyError):
                self._write()
                self._counted = summary.progress.quarantined_records

    def end(self, say: Callable[[str], None]) -> None:
        try:
            self._write()
        except (OSError, GearpyError) as error:
            if self._counted:
                say(f"records in quarantine are lost, as they cannot be kept: {error}")
        if self._disk is not None:
            say(_told(self._known, self._disk.place))
            self._disk.unlock()

    def _write(self) -> None:
        client, app_id = self._running.client, self._running.app_id
        listed = client.ask(ListQuarantined(app_id=app_id)).records
        new = sorted(each.number for each in listed if each.number > self._known)
        if not new:
            return
        if self._disk is None:
            name = re.sub(r"[^\w.-]+", "-", self._running.name, flags=re.ASCII)
            stamp = re.sub(r"[^0-9]", "", text.moment(wall_ms()))
            path, others = self._runs / f"{name}-{stamp}", 1
            while path.exists():
                path, others = self._runs / f"{name}-{stamp}-{others}", others + 1
            self._disk = LocalFolder(path, private=True)
            self._disk.make()
            self._disk.put(RECORDS, b"")
        for number in new:  # One at a time: one answer need not hold them all.
            whole = client.ask(ListQuarantined(app_id=app_id, numbers=(number,))).records
            self._disk.append(RECORDS, encode_records(whole))
            self._known = number


def tell_quarantine(path: Path, runs_folder: str, say: Callable[[str], None]) -> None:
    """Say that a run with a name leaves records in quarantine, if it does."""
    with suppress(OSError, GearpyError):
        name = run_name_of(path, runs_folder)
        if count := len(StoredQuarantine(path, name).records()):
            say(_told(count, name))


def _told(count: int, name: str) -> str:
    records = text.plural(count, "record")
    return f"{records} in quarantine: 'gear quarantine list --run {name}' shows why"


def _listed(numbers: Sequence[int]) -> str:
    more = ", ..." if len(numbers) > _NUMBERS_MAX else ""
    return ", ".join(map(str, numbers[:_NUMBERS_MAX])) + more
