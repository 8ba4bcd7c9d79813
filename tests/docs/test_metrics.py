"""docs/metrics.md has every metric of the catalogue, and says of each what that says."""

from pathlib import Path
from typing import Final

from gearpy.metrics.catalogue import CATALOGUE, USER_PREFIX
from gearpy.metrics.user import METRICS_MAX

PAGE: Final = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def table() -> list[str]:
    """Return the table of the page; print it to bring the page up to date."""
    rows = [
        f"| `{info.name}` | {info.kind} | {', '.join(info.labels) or '-'} | {info.help} |"
        for info in CATALOGUE.values()
    ]
    return ["| metric | kind | labels | meaning |", "|---|---|---|---|", *rows]


def test_the_table_is_the_catalogue() -> None:
    found = [line for line in PAGE.splitlines() if line.startswith(("| `", "| metric", "|---"))]

    assert found[: len(table())] == table(), "\n".join(table())


def test_the_rules_of_names_are_those_of_the_code() -> None:
    assert f"`{USER_PREFIX}" in PAGE
    assert f"{METRICS_MAX} metrics" in PAGE
