"""Keys and values as bytes.

- `coders`: how values are kept: as bytes, and what can never change also as the object that it is.
- `keys`: keys as bytes: equal keys give equal bytes, whatever their types, and bytes give a key
  back.
- `live`: values that cannot change, and may stay objects until an epoch ends.
"""
