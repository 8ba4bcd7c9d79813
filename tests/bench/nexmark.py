"""Nexmark on gearpy in rows, columns and SQL, beside Flink, Bytewax, DuckDB and plain Python.

Each system is a process that is asked one question after the other; what is compared was measured
in turns. A cost is CPU time of an event: the least of all turns, each the difference of a run with
many events and one with few, so without what a run takes to start.
"""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tests.servers import recipes

QUERIES: Final = (
    *("q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q13", "q14", "q15"),
    *("q16", "q17", "q18", "q19", "q20", "q21", "q22", "words", "windows"),
)
#: The forms of gearpy's events.
FORMS: Final = ("rows", "columns", "sql")
OTHERS: Final = ("flink", "mini", "bytewax", "loop", "duckdb")
#: What differs between the systems, by query.
REMARKS: Final = {
    "q3": "Flink remembers people for good",
    "q6": "no SQL of Flink; that of gearpy orders sales by their last bids",
    "q9": "SQL gives each improvement, too",
    "q13": "Flink: a function over a map",
    **dict.fromkeys(("q15", "q16", "q17"), "columns: with each batch"),
    **dict.fromkeys(("q18", "q19"), "columns and SQL: once, at the end"),
    "q20": "Flink remembers auctions for good",
    "words": "a running count, 1,000 words",
    "windows": "10 s, 1,000 keys, in order",
}
_HERE: Final = Path(__file__).parent
_FLINK: Final = [
    f"org.apache.flink:{name}:2.1.0"
    for name in (
        *("flink-streaming-java", "flink-clients", "flink-runtime", "flink-connector-datagen"),
        *("flink-table-api-java-bridge", "flink-table-planner_2.12", "flink-table-runtime"),
    )
]
_GROUP: Final = 50
_OPENED: Final = ("util", "lang", "time", "nio", "util.concurrent", "util.concurrent.atomic")
#: Queries for which mini-batches make a difference.
_MINI: Final = frozenset({"q3", "q4", "q9", "q15", "q16", "q17", "q18", "q19", "q20"})
#: As Flink has no checkpoints here. The last epoch is stored anyway.
_WITHOUT_EPOCHS: Final = {"GEARPY_CHECKPOINT_INTERVAL_MS": "86400000"}
#: Events of a short run, of a check, and of a run that tells how many a long one takes.
_FEW: Final = 5000
_CHECKED: Final = 20_000
_TRIED: Final = 25_000
_TRIED_IN_FLINK: Final = 200_000
#: A JVM takes longer runs, as what it takes to start varies by tenths of a second.
_LONGER_IN_FLINK: Final = 3
_LONGER: Final = 1.1
_MOST: Final = {"rows": 500_000, "loop": 500_000, "bytewax": 60_000}
_MOST_OTHERS: Final = 2_000_000
#: Questions that are not asked in SQL.
_NO_SQL: Final = frozenset({"words", "windows"})


def _built_flink() -> Path:
    """Return a folder with Flink and the program, compiled, from the cache of the user."""
    program = _HERE / "Nexmark.java"
    jars = recipes.jars("flink", _FLINK)

    def fill(folder: Path) -> None:
        javac = recipes.program("javac", package="openjdk-17-jdk-headless")
        command = [javac, "-nowarn", "-cp", f"{jars}/*", "-d", str(folder), str(program)]
        recipes.run("compiling Nexmark.java", command)
        services = folder / "META-INF" / "services"
        services.mkdir(parents=True)
        factory = services / "org.apache.flink.table.factories.Factory"
        factory.write_text("Nexmark$CheckFactory\n", encoding="ascii")

    return recipes.cached("flink-nexmark", program.read_text(encoding="utf-8"), fill)


class AskedProcess:
    """A process that answers questions, one line each."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        settings = os.environ | _WITHOUT_EPOCHS
        if name == "flink":
            opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
            path = f"{_built_flink()}:{recipes.jars('flink', _FLINK)}/*"
            command = ["java", *opens, "-Xmx4g", "-cp", path, "Nexmark"]
        elif name == "bytewax":
            settings["PYTHONPATH"] = str(recipes.packages("bytewax", ["bytewax==0.21.1"]))
            command = [sys.executable, str(_HERE / "nexmark_bytewax.py")]
        else:
            command = [sys.executable, "-P", "-m", "tests.bench.nexmark_worker", name]
        most = str(_MOST.get(name, _MOST_OTHERS))
        self._process = stack.enter_context(
            subprocess.Popen(
                [*command, most],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=settings,
            )
        )
        stack.callback(self._process.kill)

    def ask(self, *words: object) -> dict[str, Any]:
        assert self._process.stdin, "it is a pipe"
        assert self._process.stdout, "it is a pipe"
        if self._process.poll() is None:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
            if line := self._process.stdout.readline():
                answer: dict[str, Any] = json.loads(line)
                return answer
        return {"error": f"the process has ended with {self._process.wait()}"}


@dataclass(slots=True, kw_only=True)
class Asked:
    """The cost of a query on one system.

    Attributes:
        events: of a long run.
        long_s: CPU seconds of long runs, by turn.
        short_s: those of short ones.
        answer: number of rows of the answer to a check, and their sum.
        problem: why it was not measured.
    """

    process: AskedProcess
    system: str
    query: str
    events: int = 0
    long_s: list[float] = field(default_factory=list)
    short_s: list[float] = field(default_factory=list)
    answer: tuple[int, int] | None = None
    problem: str = ""

    def prepare(self, seconds: float) -> None:
        """Check the answer, find out how many events take so many seconds, and measure them."""
        in_flink = self.system in {"flink", "mini"}
        said = self._ask(_CHECKED, "check")  # It also loads what the first run needs.
        if said and "rows" in said and self.query not in {"words", "windows"}:
            self.answer = said["rows"], said["sum"]
        seconds *= _LONGER_IN_FLINK if in_flink else 1
        most = _MOST.get(self.system, _MOST_OTHERS)
        self.events = _TRIED_IN_FLINK if in_flink else _TRIED
        if not (short := self._ask(_FEW)):
            return
        while long := self._ask(self.events):
            took_s = max(long["cpu"] - short["cpu"], seconds / 10)
            if took_s > seconds / 2 or self.events == most:
                self.long_s, self.short_s = [long["cpu"]], [short["cpu"]]
                break
            wanted = int(self.events * seconds / took_s)
            self.events = min(wanted // _GROUP * _GROUP, most)

    def measure(self) -> None:
        if self.events and (long := self._ask(self.events)) and (short := self._ask(_FEW)):
            self.long_s.append(long["cpu"])
            self.short_s.append(short["cpu"])

    def _ask(self, events: int, what: str = "measure") -> dict[str, Any] | None:
        how = "mini" if self.system == "mini" else "plain"
        said = self.process.ask(self.query, how, events, what)
        if "error" in said:
            self.problem, self.events = said["error"], 0
            return None
        return said

    def rates(self) -> list[float]:
        """Return M events for each CPU second, by turn, from the least to the greatest.

        Turns are left out whose long run took hardly longer than a short one: they tell nothing.
        """
        least_s, events = min(self.short_s, default=0.0), self.events - _FEW
        return sorted(
            events / (each - least_s) / 1e6 for each in self.long_s if each > _LONGER * least_s
        )


def ask_all(
    systems: Sequence[str], queries: Sequence[str], *, turns: int, seconds: float
) -> Iterator[str]:
    """Ask each query of each system, in turns; yield lines of a table of Markdown.

    Args:
        systems: some of `FORMS` and `OTHERS`.
        seconds: of CPU that a long run of gearpy takes, about.
    """
    own = [system for system in FORMS if system in systems]
    pairs = [(one, peer) for one in own for peer in systems if peer not in FORMS]
    if {"columns", "sql"} <= set(own):
        pairs.append(("sql", "columns"))
    titles = [*systems, *(f"{one} ÷ {peer}" for one, peer in pairs), "equal", "remark"]
    yield "| query | " + " | ".join(titles) + " |"
    yield "|---" * (len(titles) + 1) + "|"
    rows: list[Mapping[str, Asked]] = []
    with ExitStack() as stack:
        processes = {
            name: AskedProcess(name, stack)
            for name in dict.fromkeys("flink" if each == "mini" else each for each in systems)
        }
        for query in queries:
            row = {
                name: Asked(
                    process=processes["flink" if name == "mini" else name], system=name, query=query
                )
                for name in systems
                if query in _MINI or name != "mini"
                if query not in _NO_SQL or name not in {"sql", "duckdb"}
            }
            for each in row.values():
                each.prepare(seconds)
            for turn in range(1, turns):
                for each in sorted(row.values(), key=lambda one: one.system, reverse=turn % 2 == 1):
                    each.measure()
            rows.append(row)
            yield row_text(row, systems, pairs)
    yield from means_of(rows, pairs)
    for one in chain.from_iterable(row.values() for row in rows):
        if one.problem:
            yield f"{one.query} {one.system}: {one.problem}"


def row_text(
    row: Mapping[str, Asked], systems: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> str:
    """Return rates of a query, their ratios, and whose answer is another one."""
    cells = [_rate_text(row.get(system)) for system in systems]
    cells += [f"{ratio:.2g}" if (ratio := _ratio(row, pair)) else "" for pair in pairs]
    answers = {system: each.answer for system, each in row.items() if each.answer}
    usual = Counter(answers.values()).most_common(1)
    others = [system for system, answer in answers.items() if answer != usual[0][0]]
    cells.append(f"not {', '.join(others)}" if others else "yes" if answers else "")
    query = next(iter(row.values())).query
    return f"| {query} | " + " | ".join((*cells, REMARKS.get(query, ""))) + " |"


def means_of(
    rows: Sequence[Mapping[str, Asked]], pairs: Sequence[tuple[str, str]]
) -> Iterator[str]:
    for pair in pairs:
        if ratios := [ratio for row in rows if (ratio := _ratio(row, pair))]:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            least = f"least {min(ratios):.2g}, {len(ratios)} queries"
            yield f"{' ÷ '.join(pair)}: geometric mean {mean:.2f}, {least}"


def _ratio(row: Mapping[str, Asked], pair: tuple[str, str]) -> float:
    """Return the ratio of the best rates; 0 if one was not measured."""
    own, peer = (max(row[each].rates(), default=0.0) if each in row else 0.0 for each in pair)
    return own / peer if peer else 0.0


def _rate_text(asked: Asked | None) -> str:
    rates = asked.rates() if asked else []
    return f"{rates[-1]:.3g} ({rates[0]:.2g})" if rates else ""
