"""Plain building blocks that every other core uses."""
