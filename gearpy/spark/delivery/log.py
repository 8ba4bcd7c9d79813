"""The log of batches that are handed over: which were begun, and which were taken."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from gearpy.core.handover.handoff import HandoffBatch
from gearpy.core.handover.window_log import HANDOVERS
from gearpy.errors import GearpyError
from gearpy.storage.folder.api import Folder

_INTENT: Final = "intent"
_DONE: Final = "done"
_BEGIN: Final = "begin"
_NAME: Final = re.compile(r"(?P<sink>.+)\.(?P<id>\d{12,})\.(?P<kind>intent|done)", re.ASCII)


class BatchLog:
    """Small files in the folder of a window log, two for each batch; old ones are removed.

    ``NAME.ID.intent`` is written before the function is called with a batch, ``NAME.ID.done``
    after it. ``NAME.owner`` names the only writer: the start that began last. ``NAME.begin`` says
    where the first batch begins.

    Invariant: an intent that was once followed by a call never changes, and neither does where the
    first batch begins.

    Args:
        log_id: tells which log it is; empty while there is none.
    """

    def __init__(self, store: Folder, name: str, *, log_id: Callable[[], str] = lambda: "") -> None:
        self._store = store
        self._name = name
        self._owner_file = f"{HANDOVERS}{name}.owner"
        self._log_id = log_id
        self._token = ""

    def claim(self) -> None:
        """Become the only writer of this log."""
        # A log that was written without a hand-over may lack the folder.
        self._store.make(HANDOVERS)
        self._token = uuid4().hex
        self._store.put(self._owner_file, json.dumps({"token": self._token}).encode())

    def read(self) -> tuple[HandoffBatch | None, HandoffBatch | None]:
        """Return the newest batch that was taken, and the newest that was begun."""
        done_id, begun_id = self._newest(_DONE), self._newest(_INTENT)
        done = self._read(done_id, _DONE) if done_id else None
        if done_id and done is None:
            raise GearpyError(
                f"{self._store.location(self._file(done_id, _DONE))} is damaged: nobody knows "
                "which batch is next"
            )
        # An intent that cannot be read was not complete, so no function was called with it.
        return done, self._read(begun_id, _INTENT) if begun_id else None

    def begin(self, start: Mapping[str, int]) -> Mapping[str, int]:
        """Make durable where the first batch begins, unless that is known; return it.

        What is removed from then on, and was not handed over, is missed.

        Raises:
            GearpyError: it is known of another log, or is damaged.
        """
        file = f"{HANDOVERS}{self._name}.{_BEGIN}"
        text = json.dumps({"log": self._log_id(), "start": dict(start)})
        if self._store.put_new(file, text.encode()):
            return start
        found = self._load(file)
        try:
            return _position(found["start"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise GearpyError(
                f"{self._store.location(file)} is damaged: remove it to begin with what is kept"
            ) from None

    def write_intent(self, batch: HandoffBatch) -> None:
        """Make a batch durable before the function is called with it."""
        self._check_owner()
        file, text = self._file(batch.batch_id, _INTENT), self._text(batch)
        if self._store.put_new(file, text):
            return
        known = self._read(batch.batch_id, _INTENT)
        if known is None:  # It was cut short.
            self._store.put(file, text)
        elif known != batch:
            raise self._given_up()

    def write_done(self, batch: HandoffBatch) -> None:
        """Make durable that a batch was taken, and forget those before it."""
        self._check_owner()
        self._store.put(self._file(batch.batch_id, _DONE), self._text(batch))
        for number in (batch.batch_id - 1, batch.batch_id - 2):
            for kind in (_INTENT, _DONE):  # A done one without an intent is no harm.
                if number > 0:
                    self._store.remove(self._file(number, kind))

    # -- files -----------------------------------------------------------------------------

    def _file(self, number: int, kind: str) -> str:
        return f"{HANDOVERS}{self._name}.{number:012d}.{kind}"

    def _newest(self, kind: str) -> int:
        found = (_NAME.fullmatch(name) for name in self._store.names(HANDOVERS))
        return max(
            (
                int(each["id"])
                for each in found
                if each is not None and each["sink"] == self._name and each["kind"] == kind
            ),
            default=0,
        )

    def _read(self, number: int, kind: str) -> HandoffBatch | None:
        try:
            found = self._load(self._file(number, kind))
            batch = HandoffBatch(
                batch_id=number,
                start=_position(found["start"]),
                end=_position(found["end"]),
                rows=int(found["rows"]),
            )
            return batch if found["batch_id"] == number else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _load(self, file: str) -> Any:
        """Return the content of a file; None if it is missing or holds no JSON."""
        try:
            found = json.loads(self._store.read(file) or b"")
        except ValueError:
            return None
        noted, here = found.get("log") if isinstance(found, dict) else None, self._log_id()
        if noted and here and noted != here:
            raise GearpyError(
                f"{self._store.location(file)} is about another log than the one that is there "
                f"now, which was made anew: remove {HANDOVERS}{self._name}.* to hand over all of it"
            )
        return found

    def _text(self, batch: HandoffBatch) -> bytes:
        known = {"start": dict(batch.start), "end": dict(batch.end), "rows": batch.rows}
        return json.dumps({"batch_id": batch.batch_id, "log": self._log_id(), **known}).encode()

    def _check_owner(self) -> None:
        try:
            found = json.loads(self._store.read(self._owner_file) or b"{}")
        except ValueError:
            found = {}
        if found.get("token") != self._token:
            raise self._given_up()

    def _given_up(self) -> GearpyError:
        return GearpyError(
            f"another start of sink {self._name!r} hands over what is in {self._store.place}: this "
            "one was given up, or two applications write one folder"
        )


def _position(found: Mapping[str, Any]) -> dict[str, int]:
    return {str(lane): int(last) for lane, last in found.items()}
