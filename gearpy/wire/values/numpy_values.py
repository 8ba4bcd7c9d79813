"""Scalars and arrays of numpy <-> their type and their bytes.

numpy is imported only where such a value is met. What holds Python objects is refused: there are
pointers in its bytes.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final

from gearpy.errors import CannotTravel, ProtocolError

_TYPE: Final = re.compile(r"[<>|][biufcmMSUV]\d{1,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")
_DIMENSIONS_MAX: Final = 32
_DEPTH_MAX: Final = 16


def encode_scalar(value: Any) -> bytes | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic) or value.dtype.names is not None:
        return None
    name: str = value.dtype.str
    if not _TYPE.fullmatch(name):
        return None
    raw: bytes = bytes([len(name)]) + name.encode() + value.tobytes()
    return raw


def decode_scalar(data: bytes) -> Any:
    numpy = _numpy()
    name, raw = data[1 : 1 + data[0]].decode(), data[1 + data[0] :]
    if not _TYPE.fullmatch(name) or numpy.dtype(name).itemsize != len(raw):
        raise ProtocolError(f"malformed numpy value of type {name!r} in a record")
    return numpy.ndarray((), name, buffer=raw)[()]


def encode_array(value: Any) -> list[Any] | None:
    """Return an array, or a scalar with fields, as plain values; None if it is something else.

    The order of its memory is not kept: it arrives in C order.

    Raises:
        CannotTravel: it holds Python objects, or is of a kind with more than elements.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray | numpy.void):
        return None
    is_scalar = isinstance(value, numpy.void)
    if not is_scalar and type(value) is not numpy.ndarray:
        raise CannotTravel(
            f"it is a {type(value).__name__}, more than a numpy array: make it one by "
            "numpy.asarray(...)"
        )
    descr = None if value.dtype.hasobject else numpy.lib.format.dtype_to_descr(value.dtype)
    if descr is None or not all(map(_TYPE.fullmatch, _types_in(descr))):
        raise CannotTravel(
            f"it is a numpy array of type {value.dtype}, not of numbers, times, booleans or text "
            "of fixed length: convert it, or send a list"
        )
    return [_plain(descr), None if is_scalar else list(value.shape), value.tobytes()]


def decode_array(parts: Sequence[Any]) -> Any:
    """Return the array that `encode_array` made into plain values; it may be changed."""
    descr, shape, raw = parts
    if not all(type(each) is str and _TYPE.fullmatch(each) for each in _types_in(descr)):
        raise ProtocolError("malformed type of a numpy array in a record")
    numpy = _numpy()
    dtype = numpy.lib.format.descr_to_dtype(_described(descr))
    sizes = () if shape is None else tuple(shape)
    if len(sizes) > _DIMENSIONS_MAX or any(type(n) is not int or n < 0 for n in sizes):
        raise ProtocolError("malformed shape of a numpy array in a record")
    if dtype.hasobject or dtype.itemsize * prod(sizes) != len(raw):
        raise ProtocolError(f"a numpy array of shape {sizes} has {len(raw)} bytes")
    array = numpy.ndarray(sizes, dtype, buffer=bytearray(raw))
    return array[()] if shape is None else array


def _types_in(descr: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the simple types that a description of a type is made of."""
    if isinstance(descr, str) or not isinstance(descr, list | tuple) or depth > _DEPTH_MAX:
        yield descr if depth <= _DEPTH_MAX else ""
        return
    for _, each, *_ in descr:
        yield from _types_in(each, depth + 1)


def _plain(descr: Any) -> Any:
    if isinstance(descr, str):
        return descr
    return [[name, _plain(each), *map(list, shape)] for name, each, *shape in descr]


def _described(descr: Any) -> Any:
    if isinstance(descr, str):
        return descr
    return [
        (tuple(name) if isinstance(name, list) else name, _described(each), *map(tuple, shape))
        for name, each, *shape in descr
    ]


def _numpy() -> Any:
    try:
        import numpy as np  # noqa: PLC0415 - needed for such values only
    except ImportError as error:
        raise ProtocolError(
            "a record holds a numpy value, and numpy is not installed here: pip install numpy"
        ) from error
    return np
