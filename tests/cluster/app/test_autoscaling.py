"""The bounds of autoscale for an application that runs: given, kept, and ended by a number."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.client.client import RunningApplication
from gearpy.config.schema import Config
from gearpy.errors import SubmitRefused
from gearpy.messages.client import UpdateApplication
from gearpy.messages.summaries import ScaleBounds
from tests.eventually import eventually

_BOUNDS = ScaleBounds(least=1, most=4, busy=0.6)


def an_app(stop: threading.Event) -> gp.StreamApp:
    def numbers() -> Any:
        n = 0
        while not stop.wait(0.02):
            yield n
            n += 1

    app = gp.StreamApp("numbers")
    app.read(gp.generate(numbers), name="read").key_by(lambda n: n % 3).count(name="count").write(
        gp.to_list([])
    )
    return app


def scaled(running: RunningApplication) -> dict[str, ScaleBounds]:
    return {each.step: each.bounds for each in running.describe().scaled if each.step}


def test_bounds_are_given_without_a_version_and_a_number_ends_them(
    configured: Callable[..., Config],
) -> None:
    stop = threading.Event()
    config = configured(checkpoint__interval_ms=50, application__trial_seconds=1)
    with (
        LocalCluster(config, workers=1, slots=8) as cluster,
        cluster.submitted(an_app(stop)) as running,
    ):
        eventually(lambda: running.summary().progress.epoch > 0, within_s=120)
        client, app_id = running.client, running.app_id
        assert scaled(running) == {}

        bound = client.change(UpdateApplication(app_id=app_id, bounds=(("count", _BOUNDS),)))
        assert (bound.version, bound.moves) == (0, ())
        eventually(lambda: scaled(running) == {"count": _BOUNDS}, within_s=120)
        with pytest.raises(SubmitRefused, match="no step is called 'cuont'"):
            client.change(UpdateApplication(app_id=app_id, bounds=(("cuont", _BOUNDS),)))

        fixed = client.change(UpdateApplication(app_id=app_id, scale=(("count", 2),)))
        assert client.wait_for_version(app_id, fixed.version, 120).state == "running"
        eventually(lambda: scaled(running) == {}, within_s=120)
        same = client.change(UpdateApplication(app_id=app_id, scale=(("count", 2),)))
        assert (same.version, same.moves) == (fixed.version, ())
        stop.set()
