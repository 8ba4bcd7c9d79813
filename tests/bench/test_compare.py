"""Two commits in turns: ratios and their spread, and what is said of a commit that is not there."""

import pytest
from typer.testing import CliRunner

from tests.bench import main
from tests.bench.compare import BenchRatios, earlier_revision

_INVOKE = CliRunner().invoke


def test_a_line_has_the_median_of_the_turns_and_their_spread() -> None:
    """Each turn has a ratio of its own; figures of one version alone are left out."""
    ratios = BenchRatios("rows")
    for before, now in ((1e6, 1.1e6), (2e6, 1.8e6), (1e6, 1e6)):
        ratios.before.append({"events/s": before, "only before": 1})
        ratios.now.append({"events/s": now})
    assert list(ratios.lines()) == [
        "rows     events/s                   1.00 (0.90 to 1.10, 3 turns)       1 M ->     1.1 M"
    ]


def test_a_bench_that_one_version_does_not_have_says_so() -> None:
    assert list(BenchRatios("rows", problem="not measured before: gone").lines()) == [
        "rows     not measured before: gone"
    ]


@pytest.mark.parametrize(("options", "code"), [((), 2), (("--short",), 0)])
def test_an_unknown_commit_fails_only_where_it_was_asked_for(
    options: tuple[str, ...], code: int
) -> None:
    done = _INVOKE(main.app, ["compare", "no-such-commit", *options])
    assert done.exit_code == code
    assert "no-such-commit" in done.output


def test_an_unknown_bench_is_named() -> None:
    done = _INVOKE(main.app, ["compare", earlier_revision() or "HEAD", "no-such-bench"])
    assert done.exit_code == 2
    assert "no such bench: no-such-bench" in done.output
