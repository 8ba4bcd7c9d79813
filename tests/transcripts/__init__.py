"""Stories of the cores: commands in, decisions out, in text files that people read.

- `transcript`: reads a file of commands, and writes it with what comes of them.
- `link`: one link between two tasks. `clock`: the application clock. `application`: an app master,
  with executors that answer. `consensus`: members that agree on a log.
- `test_transcripts`: plays every file; `pytest tests/transcripts --rewrite` writes them anew.
"""
