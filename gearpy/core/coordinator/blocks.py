"""Checked blocks: how stored files begin that must be seen to be whole, and what is wrong with one.

A file begins with ``magic | version | number | checksum``. The checksum covers these, what the
file adds to them, such as a table or all of its body, and a name, if one file must not stand for
another. The number is the size of the body, or whatever else the file has to say of itself.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

_HEADER: Final = Struct(">8sHQI")
_CHECKED: Final = Struct(">8sHQ")
HEADER_BYTES: Final = _HEADER.size
#: Is in the reason of damage that is none: another gearpy can read the file.
OTHER_VERSION: Final = "this gearpy reads"

#: Makes the error of damage: at a byte, for a reason.
Damaged: TypeAlias = Callable[[int, str], Exception]


class BlockFormat(NamedTuple):
    """A kind of file; ``version`` is raised when an older gearpy can no longer read it.

    What reads raises the error that ``damaged`` makes.
    """

    magic: bytes
    version: int

    def header(self, number: int, checked: bytes = b"", *, name: str = "") -> bytes:
        plain = _CHECKED.pack(self.magic, self.version, number)
        return plain + crc32(checked, crc32(plain, crc32(name.encode()))).to_bytes(4, "big")

    def number(self, data: bytes, damaged: Damaged) -> int:
        if len(data) < HEADER_BYTES:
            raise damaged(len(data), f"it ends after {len(data)} bytes, within its header")
        magic, version, number, _ = _HEADER.unpack_from(data)
        if magic != self.magic:
            raise damaged(0, "it does not begin as it must")
        if version != self.version:
            reason = f"format version {version}, {OTHER_VERSION} version {self.version}"
            raise damaged(len(magic), reason)
        return int(number)

    def check(self, data: bytes, damaged: Damaged, checked: bytes = b"", *, name: str = "") -> int:
        """Return the number in a header; refuse one that does not go with what follows it."""
        number = self.number(data, damaged)
        if data[:HEADER_BYTES] != self.header(number, checked, name=name):
            raise damaged(0, "the checksum of its header does not match")
        return number

    def block(self, body: bytes, *, name: str = "") -> bytes:
        return self.header(len(body), body, name=name) + body

    def body(self, data: bytes, damaged: Damaged, *, name: str = "") -> bytes:
        size, body = self.number(data, damaged), data[HEADER_BYTES:]
        if len(body) != size:
            raise damaged(len(data), f"it holds {len(body)} bytes of {size}")
        self.check(data, damaged, body, name=name)
        return body
