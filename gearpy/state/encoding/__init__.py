"""Keys and values as bytes."""
