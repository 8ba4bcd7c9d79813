"""Values that messages may have, for tests that draw them by type."""

from hypothesis import strategies as st

# Ids and times are 64 bits; text may hold anything but lone surrogates, which are escaped.
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))
# A NaN arrives as one, and is equal to none.
st.register_type_strategy(float, st.floats(allow_nan=False))
