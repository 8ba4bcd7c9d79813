"""Submits an application to a cluster."""

from collections.abc import Sequence

from gearpy.cli.connect import connected
from gearpy.cli.output import print_json
from gearpy.cli.program import load_program
from gearpy.cli.settings import application_overrides
from gearpy.config.schema import Config

__all__ = ["submit_application"]


def submit_application(
    target: str,
    args: Sequence[str],
    *,
    name: str | None,
    config: Config,
    executors: int | None,
    as_json: bool,
) -> None:
    """Load it here, start it there, print its id.

    Raises:
        GearpyError: it cannot be loaded, there is no cluster, or the cluster refuses it.
    """
    artifact, application = load_program(target, args)
    with connected(config) as client:
        running = client.submit(
            name or application.name,
            artifact,
            executors=executors or config.application.executors,
            config=application_overrides(config),
        )
    if as_json:
        print_json({"app_id": running.app_id, "name": running.name})
    else:
        print(f"application {running.app_id} ({running.name}) submitted")
