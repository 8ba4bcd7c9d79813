"""Nexmark: questions to an auction site, asked of streams.

    bin/gear run examples/nexmark/run.py -- q5 --events 100000

`queries.py` has the questions, `events.py` makes the events.
"""

import argparse

from events import Nexmark
from queries import QUERIES, answers_of

import gearpy as gp


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from command-line arguments."""
    options = _parser().parse_args(args)
    nexmark = Nexmark(
        events=options.events,
        seed=options.seed,
        per_second=options.per_second,
        out_of_order_ms=options.out_of_order,
        rate=options.rate,
        partitions=options.parallelism,
    )
    app = gp.StreamApp(f"nexmark-{options.query}", parallelism=options.parallelism)
    answers = answers_of(options.query, app, nexmark, options.form)
    answers.write(gp.console() if options.out is None else gp.parquet_folder(options.out))
    return app


def _parser() -> argparse.ArgumentParser:
    queries = "\n".join(
        f"  {name:4} {(query.__doc__ or '').splitlines()[0]}" for name, query in QUERIES.items()
    )
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Ask a question of Nexmark.",
        epilog=f"queries:\n{queries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", choices=QUERIES, metavar="QUERY", help="one of those below")
    parser.add_argument("--form", choices=["rows", "columns"], help="of events; else what suits")
    parser.add_argument("--events", type=int, default=100_000, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=1, help="others have other events")
    parser.add_argument("--per-second", type=int, default=100, help="events in it, by event time")
    parser.add_argument("--out-of-order", type=int, default=2000, metavar="MS", help="at most")
    parser.add_argument("--rate", type=float, help="events per second to read; all at once if none")
    parser.add_argument("--parallelism", type=int, default=1, help="tasks of each step")
    parser.add_argument("--out", metavar="FOLDER", help="for the answers, instead of printing them")
    return parser


if __name__ == "__main__":
    gp.run(main)
