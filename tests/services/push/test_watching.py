"""Views that all viewers share."""

from typing import Any, cast

import pytest

from gearpy.cluster.client.client import ClusterClient
from gearpy.services.push import watching
from gearpy.services.push.watching import Watching


class Slow:
    """A cluster whose answer takes a while; it tells how often it was asked."""

    now_s = 0.0
    took_s = 0.0
    asked = 0

    def __init__(self, _: object) -> None:
        pass

    def overview(self) -> int:
        Slow.now_s += Slow.took_s
        Slow.asked += 1
        return Slow.asked


@pytest.mark.parametrize(("took_s", "fresh_s"), [(0.01, 0.7), (30.0, 30.0)], ids=["fast", "slow"])
def test_a_view_is_shared_for_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch, took_s: float, fresh_s: float
) -> None:
    """Who comes back because it took so long finds it."""
    monkeypatch.setattr(watching, "ClusterWatch", Slow)
    monkeypatch.setattr(Slow, "now_s", 0.0)
    monkeypatch.setattr(Slow, "took_s", took_s)
    monkeypatch.setattr(Slow, "asked", 0)
    shared = Watching(cast("ClusterClient", None), lambda: Slow.now_s)

    views: list[Any] = [shared.overview()]
    Slow.now_s += fresh_s - 0.01
    views.append(shared.overview())
    Slow.now_s += 0.02
    views.append(shared.overview())

    assert views == [1, 1, 2]
