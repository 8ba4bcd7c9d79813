"""What is printed of a change that has been made."""

from typing import Literal

import pytest

from gearpy.cli.apps.versions import _print_outcome, _row
from gearpy.ids import AppId
from gearpy.messages.client import UpdatePlanned, VersionSummary


def a_version(state: Literal["running", "replaced"], reason: str = "") -> VersionSummary:
    return VersionSummary(
        number=1,
        filename="shop.py",
        args=(),
        scale=(),
        change="update shop.py",
        by="ada",
        at_ms=0,
        state=state,
        reason=reason,
        epoch=182,
    )


@pytest.mark.parametrize("reason", ["", "its trial saw no records"])
def test_what_the_trial_has_not_seen_stands_below_the_outcome(
    reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who reads that it runs would believe that it does what it should."""
    planned = UpdatePlanned(app_id=AppId(2), version=1, moves=())

    _print_outcome(planned, a_version("running", reason), ())

    said = "application 2: version 1 runs from epoch 182\n"
    assert capsys.readouterr().out == (said + f"{reason}\n" if reason else said)


@pytest.mark.parametrize(
    ("state", "has_ended", "said"),
    [("running", False, "runs"), ("running", True, "ran last"), ("replaced", True, "replaced")],
)
def test_no_version_of_what_has_ended_runs(
    state: Literal["running", "replaced"], said: str, *, has_ended: bool
) -> None:
    assert _row(a_version(state), has_ended=has_ended)[6] == said
