"""View of the records in quarantine of a run whose master ends with it."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from gearpy.core.coordinator.log import CoordinatorMessage, StateView, draft
from gearpy.errors import ProtocolError
from gearpy.messages.client import QuarantinedRecord

_QUARANTINED: Final = "quarantined"  # Number -> the record, and whether it is to be given back.


class KeptRecord(Struct, frozen=True, kw_only=True):
    """A record in quarantine; ``is_wanted``: the next start of the run gives it back."""

    record: QuarantinedRecord
    is_wanted: bool = False


class KeptQuarantine(StateView):
    """View of the records that were put aside in complete epochs, and not given back in one.

    They come into the log, and leave it, together with these epochs.
    """

    def read(self) -> list[KeptRecord]:
        try:
            found = [
                KeptRecord(
                    record=msgspec.msgpack.decode(values["record"], type=QuarantinedRecord),
                    is_wanted=bool(values["wanted"]),
                )
                for each in self._state.messages(_QUARANTINED)
                for values in [each.understood()]
            ]
        except (KeyError, TypeError, msgspec.DecodeError) as error:
            raise ProtocolError(f"a record in quarantine is malformed: {error!r}") from error
        return sorted(found, key=lambda each: each.record.number)

    def write(self, record: QuarantinedRecord, *, is_wanted: bool = False) -> CoordinatorMessage:
        values = {"record": msgspec.msgpack.encode(record), "wanted": is_wanted}
        return draft(_QUARANTINED, str(record.number), values)

    def drop(self, numbers: Iterable[int]) -> list[CoordinatorMessage]:
        return [draft(_QUARANTINED, str(number), None) for number in numbers]
