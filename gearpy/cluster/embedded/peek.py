"""Runs an application in this process until enough of it was seen."""

from collections.abc import Callable
from contextlib import suppress

from gearpy.cluster.embedded.launch import launched
from gearpy.cluster.embedded.run import EMBEDDED
from gearpy.config.load import load
from gearpy.errors import SubmitRefused
from gearpy.messages.summaries import ApplicationSummary
from gearpy.task.api.application import StreamApplication


def run_for_a_look(
    application: StreamApplication, *, is_enough: Callable[[], bool], timeout_s: float | None
) -> ApplicationSummary:
    """Run an application until its end, until there is enough, or until the time is over."""
    config = load(defaults=EMBEDDED)
    with launched(application, executors=1, config=config, say=_nothing) as run:
        running = run.running
        assert running is not None, "without a folder nothing has finished before"

        def look(summary: ApplicationSummary) -> None:
            if is_enough() and summary.status == "active":
                with suppress(SubmitRefused):  # It has just ended.
                    running.shutdown()

        return running.wait(timeout_s, on_progress=look)


def _nothing(_: str) -> None:
    pass
