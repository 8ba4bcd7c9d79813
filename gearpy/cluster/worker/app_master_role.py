"""Makes the actor of an app master as a launch message and the configuration ask."""

import random
from collections.abc import Callable
from pathlib import Path

from gearpy.cluster.app.actor import AppMasterActor
from gearpy.cluster.app.config import application_config
from gearpy.cluster.net.post import Post
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.trial import ProgramTrials
from gearpy.cluster.programs.artifacts import load as load_object
from gearpy.cluster.programs.outline import (
    LoadedProgram,
    LoadProgram,
    OutlineDifferences,
    outline_of,
)
from gearpy.config.schema import Config
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.storage.checkpoints import Checkpoints


def program_loader(
    config: Config, folder_of: Callable[[Artifact], Path | None], forks: ForkServer | None = None
) -> LoadProgram:
    trials = ProgramTrials(config, forks=forks)

    def load(artifact: Artifact, compared: Artifact | None) -> LoadedProgram:
        found = OutlineDifferences(why_unknown="only one of them was uploaded")
        if artifact.kind == "memory":
            outline = outline_of(load_object(artifact), artifact, config)
        elif compared is None or compared.kind == "memory":
            outline, _ = trials.load(artifact, folder_of(artifact))
        else:
            beside = compared, folder_of(compared)
            outline, found = trials.load(artifact, folder_of(artifact), compared=beside)
        outline.check_submitted()
        return LoadedProgram(
            artifact=artifact, outline=outline, compared=compared, differences=found
        )

    return load


def app_master(
    launch: LaunchExecutor,
    own: Config,
    *,
    post: Post,
    checkpoints: Checkpoints,
    folder_of: Callable[[Artifact], Path | None],
    forks: ForkServer | None = None,
) -> AppMasterActor:
    """Return the actor of an app master; for ``folder_of`` and ``forks`` see `program_loader`.

    ``own`` is the worker's configuration, without what the application sets.
    """
    return AppMasterActor(
        launch,
        lambda asked: application_config(own, asked),
        load=program_loader(application_config(own, launch.config), folder_of, forks),
        post=post,
        checkpoints=checkpoints,
        rng=random.Random(),
    )
