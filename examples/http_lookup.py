"""Look something up over HTTP for each record, many at a time.

    bin/gear run examples/http_lookup.py -- http://127.0.0.1:8000 ada blaise ada

`URL/NAME` answers with JSON, or with 404 if it does not know the name. Each name is asked for once
in a minute; other errors are tried again, and results come in the order of the records.
"""

import asyncio
import json
import sys
from http import HTTPStatus
from urllib.error import HTTPError
from urllib.request import urlopen

import gearpy as gp


def ask(url: str) -> object:
    """Return the JSON that a URL answers with; None if there is none."""
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - the caller's own
            return json.load(answer)
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise


def main(args: list[str]) -> gp.StreamApp:
    """Build the application from a URL and names."""
    url, *names = args

    async def find(name: str) -> object:
        return await asyncio.to_thread(ask, f"{url}/{name}")  # The standard library blocks.

    app = gp.StreamApp("lookup")
    app.read(gp.collection(names)).lookup(
        find,
        key=lambda name: name,
        combine=lambda name, found: {"name": name, "found": found},
        cache=1000,
        ttl="1m",
        concurrency=8,
        retries=4,
    ).write(gp.stdout(form="jsonl"))
    return app


if __name__ == "__main__":
    gp.run(main(sys.argv[1:]))
