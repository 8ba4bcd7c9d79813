"""Programs on their way to where they run: packed, uploaded, fetched, imported.

- `upload`: packs a program and uploads it to the master; see `cluster.programs.targets`.
- `targets`: which module of a program holds the application.
- `origin`: the target of an application that a program has as an object.
- `fetch`: fetches programs from the master to the machine that runs them.
- `artifacts`: loads the application that an artifact describes.
- `outline`: ProgramOutline: a loaded program as plain data, for those who run none.
- `compared`: tells which processors of two versions of a program do the same.
- `sources`: ProgramFiles: finds the definitions in files that some code comes from.
- `requirements`: checks that the packages that a program needs are installed.
- `isolation`: imports the modules of a program so that they do not mix with those of others.
"""
