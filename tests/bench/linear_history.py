"""A history of what clients have asked for and seen, and the checker that judges it."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.servers.checker import checker

Op: TypeAlias = Literal["submit", "kill", "list", "store", "load"]
#: The checker gives up an object after so long; it takes milliseconds.
_EACH: Final = "60s"


@dataclass(frozen=True, slots=True)
class Operation:
    """What one client did to one object. Without a result, nobody knows whether it was done.

    Times are those of one monotonic clock, in ns.
    """

    client: int
    object: str
    op: Op
    argument: str
    result: str | None
    call: int
    end: int

    def to_json(self) -> str:
        fields = {
            "client": self.client,
            "object": self.object,
            "op": self.op,
            "argument": self.argument,
            "result": self.result,
            "call": self.call,
            "return": self.end,
        }
        return json.dumps(fields)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checker says: how much it has seen, and the objects that fit no order of events."""

    operations: int
    objects: int
    wrong: tuple[str, ...]
    undecided: tuple[str, ...]


@dataclass(slots=True)
class Call:
    """An operation that has begun; it counts when it has a result, or may have been done."""

    result: str | None = None
    was_asked: bool = True


@dataclass(slots=True)
class History:
    """Operations of several clients, which note them from threads of their own."""

    operations: list[Operation] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, operations: Sequence[Operation]) -> None:
        with self._lock:
            self.operations += operations

    @contextmanager
    def asking(self, client: int, to: str, op: Op, argument: str = "") -> Iterator[Call]:
        """Note an operation with what the block sets; without a result it is unknown."""
        call, begin = Call(), time.monotonic_ns()
        try:
            yield call
        finally:
            if call.was_asked:
                end = time.monotonic_ns()
                self.add([Operation(client, to, op, argument, call.result, begin, end)])

    def has_accepted_since(self, begin: int) -> bool:
        """Whether an application was accepted that was submitted after a time."""
        with self._lock:
            return any(
                each.op == "submit" and each.result == "ok" and each.call > begin
                for each in reversed(self.operations)
            )

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for each in self.operations:
                file.write(each.to_json() + "\n")


def listed(living: str, ended: Sequence[str]) -> str:
    return f"{living};{''.join(f' {each}' for each in sorted(ended))}"


def verdict_of(history: History, pictures: Path | None = None) -> Verdict:
    """Return whether a history fits one order of events; draw what does not into a folder."""
    lines = "".join(each.to_json() + "\n" for each in history.operations)
    command = [str(checker()), _EACH, str(pictures or "")]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the checker failed: {done.stderr}")
    said = json.loads(done.stdout)
    return Verdict(
        operations=said["operations"],
        objects=said["objects"],
        wrong=tuple(said["wrong"]),
        undecided=tuple(said["undecided"]),
    )
