"""Programs on their way to where they run: packed, uploaded, fetched, imported."""
