"""Programs that are uploaded, and graphs of JSON that become programs.

- `graphs`: the program of a graph that is given as JSON.
- `uploads`: files that were uploaded and not yet submitted, by a handle that nobody can guess.
- `submission`: submits a program in the name of a caller.

No code of a user runs in the process of the services: a program is packed and sent, and what is
wrong in it fails the application.
"""
