"""What CSV files have that Arrow does not read itself."""
