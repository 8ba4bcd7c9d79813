"""Count the words of text files, and print those that occur most: in all, or in each window.

    bin/gear run examples/wordcount.py -- README.md docs/*.md
    bin/gear run examples/wordcount.py -- --top 5 --window 1h README.md docs/*.md

A word is a run of letters, in lower case. A line's event time is the modification time of its file,
so with --window each table row says how often a word occurs in the files that were last changed
within that window.
"""

import argparse
import re

import gearpy as gp

LETTERS = re.compile(r"[^\W\d_]+")


def words_of(line: str) -> list[str]:
    """Split a line into its words."""
    return LETTERS.findall(line.lower())


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    parser = argparse.ArgumentParser(prog="wordcount.py", description="Count the words of files.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="text files or glob patterns")
    parser.add_argument(
        "--top", type=int, default=20, metavar="N", help="so many words; 0: all, unsorted"
    )
    parser.add_argument("--window", metavar="SIZE", help='count per window, as in "10s" or "1h"')
    parser.add_argument("--parallelism", type=int, default=1, help="tasks that count")
    options = parser.parse_args(args)

    app = gp.StreamApp("wordcount")
    words = app.read(gp.files(*options.files)).flat_map(words_of)
    by_word = words.key_by(lambda word: word, parallelism=options.parallelism)
    windows = gp.tumbling(options.window) if options.window else gp.global_window()
    counts = by_word.window(windows).count()
    if options.top:
        # Among equal counts the order is by word, so that it is always the same.
        top = counts.window(windows).top_n(options.top, by=lambda count: (count.value, count.key))
        counts = top.flat_map(lambda result: result.value)
    columns = {"word": "key", "count": "value"}
    if options.window:
        columns |= {"start": "start", "end": "end"}
    counts.write(gp.console(columns=columns))
    return app


if __name__ == "__main__":
    gp.run(main)
