"""Sources that go on: lines over TCP and standard input, records made by a function.

- `tcp`: lines that a server sends over TCP.
- `stdin`: lines of standard input.
- `live_lines`: lines that come once, in pieces: nobody can go back to them.
- `generator`: records made by a function, at a given rate.
"""
