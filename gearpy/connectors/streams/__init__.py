"""Sources that go on: lines over TCP and standard input, records made by a function."""
