"""``python -m tests.bench``: see `tests.bench.main`."""

from tests.bench.main import main

main()
