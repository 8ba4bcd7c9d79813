"""SeatNotes: notes between masters in tasks of Spark and their driver, in the cluster's folder.

A task says where it is, and the driver says whether, and with whom, it begins.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from gearpy.spark.guest.seats import Seated
from gearpy.storage.folder.local import LocalFolder

#: The numbers of the seats.
NUMBERS: Final = range(1, 4)


class SeatOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to a task: to begin as one of these masters, or, without any, to end.

    Who ``joins`` waits until the others take it, if its folder is new.
    """

    attempt: str
    masters: tuple[str, ...] = ()
    joins: bool = False


class SeatNotes:
    """The notes of all seats. One that is read is whole.

    Runs on: any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = LocalFolder(folder, private=True)

    def clear(self) -> None:
        self._folder.make()
        for number in NUMBERS:
            for name in (f"task-{number}", f"order-{number}"):
                self._folder.remove(name)

    def tell(self, number: int, seated: Seated) -> None:
        self._folder.put(f"task-{number}", msgspec.json.encode(seated._asdict()))

    def come(self) -> Mapping[int, Seated]:
        found = {}
        for number in NUMBERS:
            if (data := self._folder.read(f"task-{number}")) is not None:
                found[number] = Seated(**msgspec.json.decode(data))
        return found

    def order(self, number: int, order: SeatOrder) -> None:
        self._folder.put(f"order-{number}", msgspec.json.encode(order))

    def order_of(self, number: int, attempt: str) -> SeatOrder | None:
        if (data := self._folder.read(f"order-{number}")) is None:
            return None
        found = msgspec.json.decode(data, type=SeatOrder)
        return found if found.attempt == attempt else None
