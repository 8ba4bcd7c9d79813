"""Input that ends the processes that work on it: it is noticed, found, and left out."""
