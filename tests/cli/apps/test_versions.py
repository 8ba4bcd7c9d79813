"""What is printed of a change that has been made."""

import pytest

from gearpy.cli.apps.versions import _print_outcome
from gearpy.ids import AppId
from gearpy.messages.client import UpdatePlanned, VersionSummary


@pytest.mark.parametrize("reason", ["", "its trial saw no records"])
def test_what_the_trial_has_not_seen_stands_below_the_outcome(
    reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who reads that it runs would believe that it does what it should."""
    outcome = VersionSummary(
        number=1,
        filename="shop.py",
        args=(),
        scale=(),
        change="update shop.py",
        by="ada",
        at_ms=0,
        state="running",
        reason=reason,
        epoch=182,
    )

    _print_outcome(UpdatePlanned(app_id=AppId(2), version=1, moves=()), outcome, ())

    said = "application 2: version 1 runs from epoch 182\n"
    assert capsys.readouterr().out == (said + f"{reason}\n" if reason else said)
