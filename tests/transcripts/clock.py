"""The story of the application clock: tasks report, and somebody asks what it waits for."""

from collections.abc import Iterator
from itertools import pairwise

from gearpy.core.app.clock import ClockService
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec
from gearpy.ids import MAX_MS, MIN_MS, ProcessorId, SessionId, TaskId
from tests.transcripts.transcript import Player, Words


def _time(text: str) -> int:
    return MAX_MS if text == "end" else int(text)


def _shown(time_ms: int) -> str:
    return {MAX_MS: "end", MIN_MS: "begin"}.get(time_ms, str(time_ms))


def _task(text: str) -> TaskId:
    processor, index = text.split(".")
    return TaskId(int(processor), int(index))


class _Clock:
    def __init__(self) -> None:
        self._now_ms = 0

    def chain(self, words: Words) -> Iterator[str]:
        ids = [ProcessorId(each) for each in range(len(words.plain))]
        processors = [
            ProcessorSpec(id=each, name=f"p{each}", parallelism=int(words.plain[each]))
            for each in ids
        ]
        edges = [EdgeSpec(source=one, target=two) for one, two in pairwise(ids)]
        dag = Dag.build(processors, edges)
        self._sessions = dict.fromkeys(dag.tasks(), SessionId(1))
        self._clock = ClockService(
            dag, self._sessions, stall_after_ms=words.number("stall-ms", 1000), now_ms=self._now_ms
        )
        yield f"tasks {', '.join(map(str, dag.tasks()))}"

    def report(self, words: Words) -> Iterator[str]:
        """Let a task report: its clock, and its watermark if that is beyond."""
        task_id, settings = _task(words.plain[0]), words.settings
        clock_ms = _time(words.plain[1])
        moved = self._clock.on_report(
            task_id,
            SessionId(words.number("session", self._sessions[task_id])),
            clock_ms=clock_ms,
            watermark_ms=_time(settings.get("watermark", words.plain[1])),
            hold_ms=_time(settings.get("hold", "end")),
            idle="idle" in words.plain,
            now_ms=self._now_ms,
        )
        yield f"clock {_shown(self._clock.global_min_ms)}{'' if moved else ', as before'}"

    def restart(self, words: Words) -> Iterator[str]:
        self._sessions = {each: SessionId(session + 1) for each, session in self._sessions.items()}
        self._clock.on_restart(self._sessions, start_ms=_time(words.plain[0]), now_ms=self._now_ms)
        yield f"clock {_shown(self._clock.global_min_ms)}, as before"

    def wait(self, words: Words) -> Iterator[str]:
        self._now_ms += int(words.plain[0])
        stall = self._clock.check_stall(self._now_ms)
        if stall is not None:
            tasks = ", ".join(map(str, stall.tasks))
            yield f"stalled at {_shown(stall.clock_ms)} for {stall.stalled_for_ms} ms by {tasks}"

    def why(self, _: Words) -> Iterator[str]:
        for link in self._clock.why():
            yield (
                f"{link.task_id}: clock {_shown(link.clock_ms)}, "
                f"watermark {_shown(link.watermark_ms)}: {link.waits_for}"
            )


def clock_player() -> Player:
    clock = _Clock()
    named = (clock.chain, clock.report, clock.restart, clock.wait, clock.why)
    return {each.__name__: each for each in named}
