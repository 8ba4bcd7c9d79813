"""The rules whose application a user may change, and who may change the cluster itself."""

from collections.abc import Set as AbstractSet
from typing import Final

from gearpy.messages.client import Asker

_AN_ADMIN: Final = "an admin (master.admins, or a token with the scope admin)"


def why_not(asker: Asker, owner: str, admins: AbstractSet[str]) -> str:
    """Return the reason why a user may not change an application; its owner and admins may."""
    if (asker.is_admin or asker.user in admins) or asker.user == owner:
        return ""
    return (
        f"it is of {owner or 'nobody'}, and {_named(asker)} may change its own applications only: "
        f"ask its user, or {_AN_ADMIN}"
    )


def why_no_admin(asker: Asker, admins: AbstractSet[str]) -> str:
    if asker.is_admin or asker.user in admins:
        return ""
    return f"{_named(asker)} is no admin: ask {_AN_ADMIN}"


def _named(asker: Asker) -> str:
    return asker.user or "a user without a name"
