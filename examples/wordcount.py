"""Count the words of text files: in all, or in windows of event time.

    bin/gear run examples/wordcount.py -- README.md docs/*.md
    bin/gear run examples/wordcount.py -- --window 1h README.md docs/*.md

A line's event time is the modification time of its file, so with --window each table row says
how often a word occurs in the files that were last changed within that window.
"""

import argparse

import gearpy as gp


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="wordcount.py", description="Count the words of files.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="text files or glob patterns")
    parser.add_argument("--window", metavar="SIZE", help='count per window, as in "10s" or "1h"')
    parser.add_argument("--parallelism", type=int, default=1, help="tasks that count")
    options = parser.parse_args(args)

    app = gp.StreamApp("wordcount")
    words = app.read(gp.files(*options.files)).flat_map(str.split)
    by_word = words.key_by(lambda word: word, parallelism=options.parallelism)
    if options.window:
        counts = by_word.window(gp.tumbling(options.window)).count()
        columns = {"word": "key", "count": "value", "start": "start", "end": "end"}
    else:
        counts = by_word.window(gp.global_window()).count()
        columns = {"word": "key", "count": "value"}
    counts.write(gp.console(columns=columns))
    return app


if __name__ == "__main__":
    gp.run(main)
