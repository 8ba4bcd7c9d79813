"""The rule whose application a user may change."""

from collections.abc import Set as AbstractSet

from gearpy.messages.client import Asker


def why_not(asker: Asker, owner: str, admins: AbstractSet[str]) -> str:
    """Return the reason why a user may not change an application; empty if it may.

    Its owner may, and an admin.

    Args:
        asker: who wants to.
        owner: the user of the application.
        admins: users who may change all of them.
    """
    if asker.is_admin or asker.user == owner or asker.user in admins:
        return ""
    who = asker.user or "a user without a name"
    return (
        f"it is of {owner or 'nobody'}, and {who} may change its own applications only: ask its "
        "user, or an admin (master.admins, or a token with the scope admin)"
    )
