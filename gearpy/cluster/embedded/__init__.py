"""One application in the process that started it, until its input ends or somebody stops it."""
