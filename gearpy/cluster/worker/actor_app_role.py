"""Makes an actor of an application of actors as a launch message asks."""

import random
from collections.abc import Callable
from typing import Any

from gearpy.actor.api import Actor
from gearpy.cluster.app.actor_app import ActorAppMaster
from gearpy.cluster.executor.actor_app import ActorAppExecutor
from gearpy.cluster.net.post import Post
from gearpy.cluster.programs.artifacts import Program, loaded_as
from gearpy.config.schema import Config
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.cluster import LaunchExecutor
from gearpy.task.api.actor_app import ActorApp


def role(
    launch: LaunchExecutor,
    config: Config,
    *,
    post: Post,
    load: Callable[[], Program],
    release: Callable[[], None] = lambda: None,
    metrics_address: str = "",
) -> Callable[[], Actor[Any]]:
    """Return the maker of the app master, or executor, that a worker is to start.

    ``release`` is called at its end; the process of an executor has a page of metrics there.
    """

    def app() -> ActorApp:
        return loaded_as(ActorApp, load())

    if launch.executor_id != MASTER_EXECUTOR:
        return lambda: ActorAppExecutor(
            launch, load=app, post=post, release=release, metrics_address=metrics_address
        )
    return lambda: ActorAppMaster(
        launch, config, load=app, post=post, rng=random.Random(), release=release
    )
