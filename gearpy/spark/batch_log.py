"""What is written down of batches that are handed over: which were begun, and which were taken."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from gearpy.core.handoff import HandoffBatch
from gearpy.errors import GearpyError
from gearpy.windowlog.store import HANDOVERS, Store

__all__ = ["BatchLog"]

_INTENT: Final = "intent"
_DONE: Final = "done"
_NAME: Final = re.compile(r"(?P<sink>.+)\.(?P<id>\d{12,})\.(?P<kind>intent|done)", re.ASCII)


class BatchLog:
    """Small files in the folder of a window log, two for each batch; old ones are removed.

    ``NAME.ID.intent`` is written before the function is called with a batch, ``NAME.ID.done``
    after it. ``NAME.owner`` says who may write them: whoever has begun last.

    Invariant: an intent that was once followed by a call never changes.

    Args:
        store: the folder of the window log.
        name: of the sink.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._token = ""

    def claim(self) -> None:
        """Become the only one who may write."""
        self._store.make()  # A log that was written without a hand-over may lack the folder.
        self._token = uuid4().hex
        self._store.put(self._owner, json.dumps({"token": self._token}).encode())

    def read(self) -> tuple[HandoffBatch | None, HandoffBatch | None]:
        """Return the newest batch that was taken, and the newest that was begun.

        Raises:
            GearpyError: what is written of a batch that was taken is damaged.
        """
        done_id, begun_id = self._newest(_DONE), self._newest(_INTENT)
        done = self._read(done_id, _DONE) if done_id else None
        if done_id and done is None:
            raise GearpyError(
                f"{self._store.location(self._file(done_id, _DONE))} is damaged: nobody knows "
                "which batch is next"
            )
        # One that cannot be read was not complete, so nobody was called with it.
        return done, self._read(begun_id, _INTENT) if begun_id else None

    def write_intent(self, batch: HandoffBatch) -> None:
        """Make durable what a batch is, before anybody is called with it.

        Raises:
            GearpyError: another start of the sink has taken over, or has begun another batch.
        """
        self._check_owner()
        known = self._read(batch.batch_id, _INTENT)
        if known is None:
            self._store.put(self._file(batch.batch_id, _INTENT), _text(batch))
        elif known != batch:
            raise self._given_up()

    def write_done(self, batch: HandoffBatch) -> None:
        """Make durable that a batch was taken, and forget those before it.

        Raises:
            GearpyError: another start of the sink has taken over.
        """
        self._check_owner()
        self._store.put(self._file(batch.batch_id, _DONE), _text(batch))
        for number in (batch.batch_id - 1, batch.batch_id - 2):
            for kind in (_INTENT, _DONE):  # A done one without an intent is no harm.
                if number > 0:
                    self._store.remove(self._file(number, kind))

    # -- files -----------------------------------------------------------------------------

    @property
    def _owner(self) -> str:
        return f"{HANDOVERS}{self._name}.owner"

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
        text = self._store.read(self._file(number, kind))
        try:
            return None if text is None else _batch(json.loads(text), number)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _check_owner(self) -> None:
        try:
            found = json.loads(self._store.read(self._owner) or b"{}")
        except ValueError:
            found = {}
        if found.get("token") != self._token:
            raise self._given_up()

    def _given_up(self) -> GearpyError:
        return GearpyError(
            f"another start of sink {self._name!r} hands over what is in {self._store.place}: this "
            "one was given up, or two applications write one folder"
        )


def _text(batch: HandoffBatch) -> bytes:
    known = {"start": dict(batch.start), "end": dict(batch.end), "rows": batch.rows}
    return json.dumps({"batch_id": batch.batch_id, **known}).encode()


def _batch(found: Mapping[str, Any], number: int) -> HandoffBatch:
    if found["batch_id"] != number:
        raise ValueError(number)
    return HandoffBatch(
        batch_id=number,
        start={str(lane): int(last) for lane, last in found["start"].items()},
        end={str(lane): int(last) for lane, last in found["end"].items()},
        rows=int(found["rows"]),
    )
