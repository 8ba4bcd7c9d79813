"""A query of Nexmark in a cluster inside Spark: its words, and whether its answers are right."""

from pathlib import Path
from typing import Any, Final

from pyarrow import dataset  # type: ignore[import-untyped]

from tests.examples.nexmark_answers import ANSWERS, site_of
from tests.examples.program_modules import modules_of

#: Hot items: each bid is in five windows, and they end with the auction that has most bids.
QUERY: Final = "q5"
_EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "nexmark"
PROGRAM: Final = f"{_EXAMPLE / 'run.py'}:main"
_MODULES: Final = ("events", "columns", "winning_bids", "queries", "run")
_EVENTS: Final = 30_000
_RESULTS: Final = "answers"


def words(folder: Path, *, rate: int) -> list[str]:
    """Return the arguments of the program: 30,000 events, and so many in a second."""
    asked = {"events": _EVENTS, "rate": rate, "parallelism": 2, "out": folder / _RESULTS}
    return [QUERY, *(str(word) for name, value in asked.items() for word in (f"--{name}", value))]


def is_right(folder: Path) -> bool:
    """Compare what the program has written with the answers of plain Python."""
    files = sorted(map(str, (folder / _RESULTS).glob("*.parquet")))
    rows: list[dict[str, Any]] = dataset.dataset(files).to_table().to_pylist()
    right, compared = ANSWERS[QUERY]
    with modules_of(_EXAMPLE, _MODULES) as modules:
        site = site_of(modules["events"].Nexmark(events=_EVENTS))
    return bool(rows) and compared([tuple(row.values()) for row in rows]) == right(site)
