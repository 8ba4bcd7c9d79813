"""Who may change whose application."""

import pytest

from gearpy.core.master.rights import why_no_admin, why_not
from gearpy.messages.client import Asker

ADMINS = frozenset({"ops"})


@pytest.mark.parametrize(
    ("asker", "owner"),
    [
        (Asker(user="ann"), "ann"),
        (Asker(), ""),
        (Asker(user="ops"), "ann"),
        (Asker(user="ops"), ""),
        (Asker(user="ben", is_admin=True), "ann"),
        (Asker(is_admin=True), "ann"),
    ],
)
def test_its_user_and_admins_may(asker: Asker, owner: str) -> None:
    assert why_not(asker, owner, ADMINS) == ""


@pytest.mark.parametrize(
    ("asker", "owner"), [(Asker(user="ben"), "ann"), (Asker(), "ann"), (Asker(user="ben"), "")]
)
def test_others_may_not_and_are_told_whom_to_ask(asker: Asker, owner: str) -> None:
    reason = why_not(asker, owner, ADMINS)

    assert f"it is of {owner or 'nobody'}" in reason
    assert "master.admins" in reason


def test_what_concerns_all_users_is_for_admins() -> None:
    assert why_no_admin(Asker(user="ops"), ADMINS) == ""
    assert why_no_admin(Asker(user="ann", is_admin=True), ADMINS) == ""
    assert why_no_admin(Asker(user="ann"), ADMINS).startswith("ann is no admin: ask an admin")
