"""State of one task after Gearpump: values that add up, apart by epoch."""
