"""Policies by which a master chooses workers: those of gearpy, and those of other packages."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final

from gearpy.core.master.placing import PackPolicy, PlacingPolicy, SpreadPolicy
from gearpy.errors import ConfigError

#: Packages offer a class without arguments here, under the name for ``master.scheduler``.
GROUP: Final = "gearpy.schedulers"
_OWN: Final[Mapping[str, type[PlacingPolicy]]] = {"spread": SpreadPolicy, "pack": PackPolicy}


def policy_named(name: str) -> PlacingPolicy:
    if name in _OWN:
        return _OWN[name]()
    offered = entry_points(group=GROUP)
    if name not in offered.names:
        known = ", ".join(sorted({*_OWN, *offered.names}))
        raise ConfigError(
            f"master.scheduler is {name!r}, and there are: {known}; install the package that "
            f"offers it as entry point of {GROUP}, in the environment of the master"
        )
    try:
        policy: PlacingPolicy = offered[name].load()()
    except Exception as error:
        raise ConfigError(
            f"master.scheduler {name!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    missing = [each for each in ("order", "rank") if not callable(getattr(policy, each, None))]
    if missing:
        raise ConfigError(
            f"master.scheduler {name!r} has no method {' and '.join(missing)}: see PlacingPolicy"
        )
    return policy
