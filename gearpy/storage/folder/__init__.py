"""One folder with durable files, wherever it is: everything that stores files stands on it."""
