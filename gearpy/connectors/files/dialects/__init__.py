"""What CSV files have that Arrow does not read itself.

- `dialect`: what stands between cells and around them, and which lines are none.
- `carriage_returns`: files whose lines end with a carriage return alone.
"""
