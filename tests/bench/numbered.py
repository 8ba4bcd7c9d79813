"""A stream whose answer has a closed form, through every kind of state, and what checks it.

Unique numbered records of several partitions are numbered once more by key, added up by a task
with timers of its own, and counted in windows. Each result goes to a folder that readers see
each record of once. The module is also the program that a cluster is given.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, count
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import gearpy as gp
from gearpy.state.kinds.timers import KeyTimer

PARTITIONS: Final = 4
#: Numbers of records between two looks for the end of the stream, which is a multiple of this.
LOOK_EVERY: Final = 50
OUTPUTS: Final = ("records", "sums", "windows")
_KEYS: Final = 16  # Of each partition.
_GROUPS: Final = 7
_WORDS: Final = 97
_WINDOW_MS: Final = 200
# Beside folders of results, of which one may well be called "late".
_END: Final = "_end"
_LATE: Final = "_told-late"  # The end was told when a partition was beyond it.
_REACHED: Final = "_reached"  # Has a file for every so many numbers, called like them.
_REACHED_EVERY: Final = 100
_SHOWN_MAX: Final = 20

#: A record of the source: partition and number. Its event time is the number, in ms.
_Record: TypeAlias = tuple[int, int]


# -- the program ---------------------------------------------------------------------------------


def main(args: list[str]) -> gp.StreamApp:
    """Return the application; ``args`` are the folder of results and the records per second.

    With a third one, ``files``, sums and windows go to files that readers see at once.
    """
    folder, rate, *files = args
    sink = _file if files == ["files"] else gp.jsonl_folder
    return numbered_app(Path(folder), rate=float(rate), sink=sink)


def _file(folder: Path) -> gp.Sink:
    """Return the sink of a folder: of records one that tells epochs, else a file of lines."""
    if folder.name == "records":
        return gp.jsonl_folder(folder)
    folder.mkdir(exist_ok=True)
    return gp.jsonl_file(folder / "part.jsonl")


def numbered_app(
    folder: Path,
    *,
    rate: float,
    parallelism: int = 4,
    sink: Callable[[Path], gp.Sink] = gp.jsonl_folder,
    step: Callable[[_Record], _Record] = lambda record: record,
    source: gp.Source[_Record] | None = None,
) -> gp.StreamApp:
    """Return the application; it ends where `set_end` says.

    Args:
        step: called with each record behind the source; returns it, or raises.
        source: gives the same records; None: they are made in the program.
    """
    app = gp.StreamApp("numbered", parallelism=parallelism)
    source = source or gp.generate(
        lambda partition: numbers(int(partition), folder),
        rate=rate,
        partitions=PARTITIONS,
        timestamp=lambda record: record[1],
    )
    numbered = app.read(source).map(step).key_by(_key).map_with_state(_number, initial=0)
    numbered.write(sink(folder / "records"))
    numbered.key_by(_group).process(SumTask).write(sink(folder / "sums"))
    windows = numbered.key_by(_word).window(gp.tumbling(f"{_WINDOW_MS}ms"))
    windows.count().write(sink(folder / "windows"))
    return app


def set_end(folder: Path, end: int) -> None:
    """Let each partition end before this number; none may be there yet."""
    assert end % LOOK_EVERY == 0, end
    (folder / f"{_END}.new").write_text(str(end), encoding="utf-8")
    (folder / f"{_END}.new").replace(folder / _END)


def end_after(folder: Path, records: float) -> int:
    """Return an end that no partition has come to yet, about so many of its records from now."""
    reached = (int(path.name) for path in (folder / _REACHED).glob("*"))
    number = max(reached, default=0) + _REACHED_EVERY + records
    return ceil(number / LOOK_EVERY) * LOOK_EVERY


def was_told_too_late(folder: Path) -> bool:
    """Tell whether a partition was beyond the end when it was told: then no answer is right."""
    return (folder / _LATE).exists()


def numbers(partition: int, folder: Path) -> Iterator[_Record]:
    """Yield the records of a partition, the same each time, up to an end that is told later."""
    end: int | None = None
    end_file, reached = folder / _END, folder / _REACHED
    reached.mkdir(exist_ok=True)
    for n in count():
        if n % LOOK_EVERY == 0 and end is None and os.path.exists(end_file):  # noqa: PTH110 - quick
            end = int(end_file.read_text(encoding="utf-8"))
            if n > end:
                (folder / _LATE).touch()  # After a restart it would pass for an end.
                raise ValueError(f"the end of the stream, {end}, was told at {n}, too late")
        if n % _REACHED_EVERY == 0 and end is None:
            (reached / str(n)).touch()
        if n == end:
            return
        yield partition, n


def _key(record: _Record) -> str:
    partition, n = record
    return f"{partition}-{n % _KEYS}"


def _number(seq: int, record: _Record) -> tuple[int, dict[str, Any]]:
    """Give a record the number of records of its key that came before."""
    partition, n = record
    return seq + 1, {"key": _key(record), "seq": seq, "partition": partition, "n": n}


def _group(record: dict[str, Any]) -> int:
    group: int = record["n"] % _GROUPS
    return group


def _word(record: dict[str, Any]) -> str:
    return _word_of(record["partition"], record["n"])


def _word_of(partition: int, n: int) -> str:
    return f"word{(n * 7 + partition * 13) % _WORDS}"


class SumTask(gp.Task):
    """Adds up the numbers of a group in stretches of time; a timer ends each of them.

    With a value and a map for each key, by hand what a window does.
    """

    def on_start(self, start_time_ms: int) -> None:
        self._total = self.context.state.value("total", default=0)
        self._open = self.context.state.map("open")

    def on_next(self, message: gp.Message) -> None:
        begin_ms = message.timestamp // _WINDOW_MS * _WINDOW_MS
        records, total = self._open.get(begin_ms) or (0, 0)
        self._open.put(begin_ms, (records + 1, total + message.value["n"]))
        self.context.state.timers.event_time(begin_ms + _WINDOW_MS, str(begin_ms))

    def on_key_timer(self, timer: KeyTimer) -> Iterable[gp.Message]:
        """End a stretch; its result goes on with the number of records up to there."""
        begin_ms = int(timer.tag)
        records, total = self._open.get(begin_ms)
        self._open.remove(begin_ms)
        self._total.set(self._total.get() + records)
        yield gp.Message(
            {
                "group": timer.key,
                "begin": begin_ms,
                "sum": total,
                "records": records,
                "so_far": self._total.get(),
            },
            timer.at_ms,
        )


# -- the answer ----------------------------------------------------------------------------------


class Line(NamedTuple):
    key: str
    place: int
    value: Any


@dataclass(slots=True)
class Verdict:
    """What a reader of the folders finds, compared with what must be there."""

    lines: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    pending: int = 0  #: Files that are not shown, and never will be.
    wrong: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every result is there once, in its order, and nothing else."""
        counts = (self.lost, self.duplicated, self.out_of_order, self.pending)
        return not any(counts) and not self.wrong

    def report(self) -> Iterator[str]:
        yield str(self)
        yield from self.wrong

    def __str__(self) -> str:
        return (
            f"{self.lines} results: lost {self.lost}, duplicated {self.duplicated}, out of order "
            f"per key {self.out_of_order}, wrong {len(self.wrong)}, files left pending "
            f"{self.pending}"
        )


def check(folder: Path, end: int, *, may_repeat: Collection[str] = ()) -> Verdict:
    """Compare the results in the folders with the answer for a stream up to ``end``.

    Args:
        may_repeat: folders in which a result may be there again, if it says the same.
    """
    verdict = Verdict()
    answer = expected_answer(end)
    for name in OUTPUTS:
        lines = shown_lines(folder, name)
        if name in may_repeat:
            lines = iter({repr(line): line for line in lines}.values())
        compare(name, lines, answer[name], verdict)
        verdict.pending += sum(1 for each in (folder / name / "_pending").glob("*"))
    return verdict


def check_files(folder: Path, end: int) -> Verdict:
    """Compare what the program has written whose argument is ``files``."""
    return check(folder, end, may_repeat=("sums", "windows"))


def shown_lines(folder: Path, name: str) -> Iterator[Line]:
    """Yield the results of one kind as a reader gets them: file by file, in order of names."""
    for path in sorted((folder / name).glob("*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            yield _LINE_OF[name](json.loads(text))


def expected_answer(end: int) -> dict[str, dict[tuple[str, int], Any]]:
    return {
        "records": {
            (f"{partition}-{n % _KEYS}", n // _KEYS): n
            for partition in range(PARTITIONS)
            for n in range(end)
        },
        "sums": dict(_expected_sums(end)),
        "windows": Counter(
            (_word_of(partition, n), n // _WINDOW_MS * _WINDOW_MS)
            for partition in range(PARTITIONS)
            for n in range(end)
        ),
    }


def _expected_sums(end: int) -> Iterator[tuple[tuple[str, int], list[int]]]:
    for group in range(_GROUPS):
        stretches: dict[int, list[int]] = {}
        for n in range(group, end, _GROUPS):
            stretches.setdefault(n // _WINDOW_MS * _WINDOW_MS, []).append(n)
        counts = [len(added) * PARTITIONS for added in stretches.values()]
        for (begin_ms, added), so_far in zip(stretches.items(), accumulate(counts), strict=True):
            records = len(added) * PARTITIONS
            yield (str(group), begin_ms), [sum(added) * PARTITIONS, records, so_far]


_LINE_OF: Final[dict[str, Callable[[Any], Line]]] = {
    "records": lambda each: Line(each["key"], each["seq"], each["n"]),
    "sums": lambda each: Line(
        str(each["group"]), each["begin"], [each["sum"], each["records"], each["so_far"]]
    ),
    "windows": lambda each: Line(each["key"], each["start"], each["value"]),
}


def compare(
    name: str, lines: Iterable[Line], expected: Mapping[tuple[str, int], Any], verdict: Verdict
) -> None:
    """Count what is missing, what is there again, and what comes before one of its key."""
    seen: set[tuple[str, int]] = set()
    last: dict[str, int] = {}
    for line in lines:
        verdict.lines += 1
        identity = line.key, line.place
        if identity in seen:
            verdict.duplicated += 1
        elif line.place < last.get(line.key, line.place):
            verdict.out_of_order += 1
        if expected.get(identity) != line.value:
            _note(verdict, f"{name} {identity}: {line.value}, not {expected.get(identity)}")
        seen.add(identity)
        last[line.key] = max(line.place, last.get(line.key, line.place))
    missing = expected.keys() - seen
    verdict.lost += len(missing)
    for identity in sorted(missing)[:_SHOWN_MAX]:
        _note(verdict, f"{name} {identity}: lost")


def _note(verdict: Verdict, text: str) -> None:
    if len(verdict.wrong) < _SHOWN_MAX:
        verdict.wrong.append(text)
