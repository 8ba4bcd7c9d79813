"""State of one task after Gearpump: values that add up, apart by epoch.

- `monoids`: monoids: values of state that can be added up piece by piece, in any grouping.
- `monoid_state`: state that holds no record back: it is kept apart by the epoch of its records.
- `window_state`: state of a window that slides over event time.
"""
