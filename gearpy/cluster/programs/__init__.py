"""Programs on their way to where they run: packed, uploaded, fetched, imported.

- `upload`: packs a program and uploads it to the master; see `cluster.programs.targets` for what
  may be given.
- `targets`: which module of a program holds the application.
- `fetch`: fetches programs from the master to the machine that runs them.
- `artifacts`: from what was submitted to the application it describes.
- `requirements`: checks that what a program needs is installed where it shall run.
- `isolation`: imports the modules of a program so that they do not mix with those of others.
"""
