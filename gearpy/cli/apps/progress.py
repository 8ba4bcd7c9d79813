"""Shows the progress of an application: a bar on a terminal, else a line now and then."""

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Self

from gearpy.messages.summaries import ApplicationProgress, ApplicationSummary
from gearpy.views import text

_LINES_INTERVAL_S: Final = 5.0
_BAR_INTERVAL_S: Final = 0.1
_RATE_WINDOW_S: Final = 3.0
_BAR_CHARS: Final = 24


class Rate:
    """Records per second over the last few seconds.

    Invariant: what is kept spans the window or less, but for one sample before it.
    """

    def __init__(self, window_s: float = _RATE_WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def on_count(self, now_s: float, count: int) -> float:
        samples = self._samples
        samples.append((now_s, count))
        while len(samples) > 2 and samples[1][0] <= now_s - self._window_s:  # noqa: PLR2004
            samples.popleft()
        then_s, before = samples[0]
        return (count - before) / (now_s - then_s) if now_s > then_s else 0.0


class View:
    """Shows an application that it is told about. A context manager: showing ends with it."""

    def __init__(self) -> None:
        self.last: ApplicationSummary | None = None

    def on_progress(self, summary: ApplicationSummary) -> None:
        self.last = summary

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Silence(View):
    """Shows nothing."""


class Lines(View):
    """A line on standard error every few seconds, for logs and pipes."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._began_s = self._shown_s = clock_s()
        self._shown_records = 0

    def on_progress(self, summary: ApplicationSummary) -> None:
        super().on_progress(summary)
        now_s = self._clock_s()
        span_s = now_s - self._shown_s
        if span_s < _LINES_INTERVAL_S:
            return
        progress = summary.progress
        rate = max(0.0, (progress.records_in - self._shown_records) / span_s)  # Begun again.
        self._shown_s, self._shown_records = now_s, progress.records_in
        line = "  ".join([f"{now_s - self._began_s:.0f} s", *facts(progress, rate)])
        print(text.printable(line), file=sys.stderr, flush=True)


class Bar(View):
    """A bar on a terminal, below the output of the application."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._rate = Rate()
        self._shown_s = 0.0
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        from gearpy.cli.terminal.output import errors_console

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_CHARS),
            TaskProgressColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            console=errors_console(),
            auto_refresh=False,  # `on_progress` comes often enough; one thread less.
            transient=True,
            # On a terminal the application's lines must not run into the bar. Elsewhere they are
            # somebody's data, and stay as they are.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._task = self._progress.add_task("", total=None, facts="")

    def on_progress(self, summary: ApplicationSummary) -> None:
        super().on_progress(summary)
        now_s = self._clock_s()
        rate = self._rate.on_count(now_s, summary.progress.records_in)
        if now_s - self._shown_s < _BAR_INTERVAL_S:
            return
        self._shown_s = now_s
        progress = summary.progress
        self._progress.update(
            self._task,
            description=text.printable(summary.name),
            completed=progress.done,
            total=progress.total or None,
            facts=text.printable("  ".join(facts(progress, rate))),
        )
        self._progress.refresh()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def facts(progress: ApplicationProgress, rate: float) -> list[str]:
    found = [f"{text.count(progress.records_in)} records", f"{text.count(rate)}/s"]
    if progress.watermark_ms is not None:
        found.append(f"watermark {text.watermark(progress.watermark_ms)}")
    if progress.late_records:
        found.append(f"{text.count(progress.late_records)} late")
    found += left_out(progress)
    if progress.stall:
        found.append(progress.stall)
    if progress.waits_for:
        found.append(f"waits for {progress.waits_for}")
    return found


def left_out(progress: ApplicationProgress) -> list[str]:
    """Return the counts of records that were left out, by the reason, without zeros."""
    return [f"{text.count(count)} {why}" for why, count in progress.left_out.items()]
