"""Versions of what is said and stored, in the course of an upgrade."""

import pytest

from gearpy.core.base.versions import CommonVersion
from gearpy.errors import ProtocolError
from gearpy.messages.versions import KnownVersions


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (1, "x has version 1, this gearpy knows 2 and 3: upgrade through each version between"),
        (4, "x has version 4, this gearpy knows 2 and 3: start the gearpy that wrote it"),
    ],
)
def test_two_back_and_newer_ones_are_refused(version: int, text: str) -> None:
    versions = KnownVersions(3)
    versions.check(3, "x")
    versions.check(2, "x")

    with pytest.raises(ProtocolError, match=text):
        versions.check(version, "x")


def test_the_first_version_has_none_before_it() -> None:
    with pytest.raises(ProtocolError, match="has version 0, this gearpy knows 1: upgrade"):
        KnownVersions(1).check(0, "x")


def test_three_masters_are_upgraded_one_after_the_other() -> None:
    masters = "abc"
    running = {each: CommonVersion(KnownVersions(1)) for each in masters}
    newest = dict.fromkeys(masters, 1)

    def talk() -> None:
        for one in masters:
            for other in masters:
                version = running[one].to(other)
                KnownVersions(newest[other]).check(version, one)
                running[other].on_told(one, newest[one])

    for nth, upgraded in enumerate(masters, 1):
        running[upgraded], newest[upgraded] = CommonVersion(KnownVersions(2)), 2
        talk()
        talk()
        assert running["a"].of_all(masters) == (2 if nth == 3 else 1)


def test_a_master_that_is_too_old_is_named() -> None:
    """It is spoken to all the same, so that it says the same at its end."""
    common = CommonVersion(KnownVersions(3))

    with pytest.raises(ProtocolError, match="master b has version 1, this gearpy knows 2 and 3"):
        common.on_told("b", 1)
    assert common.to("b") == 2
