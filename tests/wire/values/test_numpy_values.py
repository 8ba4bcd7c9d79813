"""Scalars and arrays of numpy on the wire, see `gearpy.wire.values.numpy_values`."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gearpy.errors import CannotTravel, ProtocolError
from gearpy.wire.values.extensions import MALFORMED
from gearpy.wire.values.numpy_values import decode_array, decode_scalar
from gearpy.wire.values.payload import decode_value, encode_value

DTYPES: Any = st.one_of(
    hnp.scalar_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.byte_string_dtypes(),
    hnp.array_dtypes(allow_subarrays=True),
)
ARRAYS: Any = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


@given(ARRAYS)
def test_an_array_arrives_as_it_was_sent(array: np.ndarray[Any, Any]) -> None:
    """Type, shape and every bit, without numbers of its own too; and it may be changed."""
    arrived = decode_value(encode_value({"deep": [array]}))["deep"][0]

    assert type(arrived) is np.ndarray
    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    assert arrived.tobytes() == array.tobytes()
    assert arrived.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(10)[::3],
        np.asfortranarray(np.eye(3)),
        np.broadcast_to(np.float32(2), (2, 2)),
        np.array([("a", 1)], np.dtype([("name", "U3"), ("n", "<i8")], align=True)),
        np.array(["NaT", "2024-01-01"], "M8[ns]"),
        np.array([1, 2], ">u2"),
    ],
)
def test_an_array_in_another_order_of_memory_arrives(array: np.ndarray[Any, Any]) -> None:
    arrived = decode_value(encode_value(array))

    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    assert np.array_equal(arrived, array, equal_nan=array.dtype.kind in "fcmM")


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.array([object()]), "type object"),
        (np.array([(1, None)], [("a", int), ("b", object)]), "not of numbers"),
        (np.ma.masked_array([1], [True]), "numpy.asarray"),
        (np.rec.array([(1,)], dtype=[("a", int)]), "numpy.asarray"),
    ],
)
def test_what_is_more_than_numbers_is_refused(array: Any, why: str) -> None:
    with pytest.raises(CannotTravel, match=why):
        encode_value(array)


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.binary(max_size=16),
            st.sampled_from(["<i8", "|O", "O", "|V4", "<U2", "M8[ns]", ""]),
            st.integers(-2, 2**70),
            st.lists(st.one_of(st.integers(-1, 9), st.sampled_from(["a", "<i4"])), max_size=3),
            st.lists(st.tuples(st.sampled_from(["a", "b", 1]), st.sampled_from(["<i4", "|O", 3]))),
        ),
        max_size=4,
    )
)
def test_nonsense_raises_a_known_error_or_gives_an_array(parts: list[Any]) -> None:
    """It may come from another process; what has pointers in it is never made."""
    try:
        made = decode_array(parts)
    except (ProtocolError, *MALFORMED):
        return
    assert not made.dtype.hasobject


@given(st.binary())
def test_nonsense_scalars_raise_a_known_error(data: bytes) -> None:
    try:
        made = decode_scalar(data)
    except (ProtocolError, *MALFORMED):
        return
    assert not made.dtype.hasobject
