"""Files of lines and of rows as sources.

- `dialects`: what CSV files have that Arrow does not read itself.
- `found`: types of columns that files tell, and values that these would change.
"""
