"""Follows a marked record, program and epoch through gearpy, and prints how far each has to go.

    python -m tests.trips            # Figures; with --all also the modules and forms.

Each trip runs for real, with a tracer that looks at the arguments and results of all functions. A
module counts when one of its functions was handed the marked thing, alone or inside of something. A
form is the type of an object that was handed on with it: a class, a list, a tuple, a dict, bytes.
Objects that work, such as actors and tasks, keep it and are no forms.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final

import msgspec

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.upload import upload
from gearpy.config.load import from_overrides
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.snapshots import TaskSnapshot
from tests.bench.one_thread import OneThread
from tests.eventually import eventually
from tests.world.cluster import ClusterSimulation

_PACKAGE: Final = str(Path(gp.__file__).parent)
MARK: Final = "marked-thing-5e1f"
_DEPTH: Final = 6
#: Mailboxes, letters, and their codec.
_CARRIERS: Final = ("gearpy.actor.", "gearpy.cluster.net.", "gearpy.wire.codec")
#: Handed to code of steps, with the name of the application: a program has arrived there.
_ENDS: Final = {"TaskContext", "SinkContext"}
#: Modules of classes that tell people of applications and epochs, at any time.
_TOLD: Final = {"gearpy.messages.metrics", "gearpy.messages.summaries"}
_ITEMS: Final = 64  # Of a list that are looked at.


class Trip:
    def __init__(self, holds: Callable[[Any], bool]) -> None:
        self.holds = holds
        self.modules: set[str] = set()
        self.forms: set[str] = set()
        self.calls = 0
        self._modules: dict[int, str] = {}  # Of each code, by identity; empty for others' code.
        self._codes: list[CodeType] = []

    @property
    def packages(self) -> set[str]:
        return {".".join(module.split(".")[:2]) for module in self.modules}

    @property
    def figures(self) -> tuple[int, int, int]:
        return len(self.modules), len(self.forms), len(self.packages)

    def __str__(self) -> str:
        carriers = [module for module in self.modules if module.startswith(_CARRIERS)]
        modules, forms, packages = self.figures
        return (
            f"{modules} modules ({len(carriers)} of which carry any message), {forms} forms, "
            f"{packages} packages, {self.calls} calls"
        )

    @contextmanager
    def traced(self) -> Iterator[None]:
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def _on_call(self, frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        module = self._modules.get(id(code))
        if module is None:
            name = str(frame.f_globals.get("__name__", ""))
            is_ours = code.co_filename.startswith(_PACKAGE)
            module = self._modules[id(code)] = name if is_ours else ""
            self._codes.append(code)  # Its identity is not given to another one.
        if not module:
            return None
        frame.f_trace_lines = False
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)
        held = [frame.f_locals[name] for name in code.co_varnames[:count] if name in frame.f_locals]
        self._see(module, [value for value in held if self.holds(value)])

        def on_return(_: FrameType, event: str, value: Any) -> Any:
            if event == "return" and self.holds(value):
                self._see(module, [value])
            return on_return

        return on_return

    def _see(self, module: str, found: list[Any]) -> None:
        if found:
            self.calls += 1
            self.modules.add(module)
            self.forms.update(type(value).__name__ for value in found if type(value) is not str)


def holding(is_mark: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a function that tells whether something is the marked thing, or hands it on."""

    def holds(value: Any, depth: int = _DEPTH) -> bool:
        if is_mark(value):
            return True
        if depth == 0 or value is None or type(value) in (int, float, bool, str, bytes):
            return False
        if type(value).__name__ in _ENDS or type(value).__module__ in _TOLD:
            return False
        try:
            return any(holds(part, depth - 1) for part in _parts_of(value))
        except (AttributeError, RuntimeError):  # It is just being made, or another thread's.
            return False

    return holds


def _parts_of(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from list(value)[:_ITEMS]
        yield from list(value.values())[:_ITEMS]
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from list(value)[:_ITEMS]
    elif isinstance(value, msgspec.Struct):
        yield from (getattr(value, name, None) for name in value.__struct_fields__)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            yield getattr(value, each.name, None)
    elif isinstance(value, (pa.RecordBatch, pa.Table, pa.Array, pa.ChunkedArray)):
        yield from value.to_pylist()[:_ITEMS]
    elif type(value).__name__ in {"Table", "Times"}:
        yield from (getattr(value, name, None) for name in ("batch", "array"))


def is_marked(value: Any) -> bool:
    if isinstance(value, str):
        return MARK in value
    return isinstance(value, (bytes, bytearray)) and MARK.encode() in value


class _Rows(gp.Source, gp.SourceReader):
    bounded = replayable = True
    out_of_order_ms = 0
    watermark_ms = gp.MIN_MS

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, resume: Any) -> gp.SourceReader:
        return self

    def read_batch(self, max_records: int) -> gp.Batch:
        rows = [{"user": MARK if at == 20 else f"user{at}", "n": at} for at in range(60)]
        self.finished = True
        return gp.Batch(rows, [at * 100 for at in range(60)])

    def snapshot(self) -> None:
        return None


def trip_of_record(folder: Path) -> Trip:
    """A record of a reader, by way of a window of its key, into a window log."""
    app = gp.StreamApp("trip")
    rows = app.read(_Rows()).map(lambda row: row | {"n": row["n"] + 1})
    counts = rows.key_by("user").window(gp.tumbling("1s")).count()
    counts.write(gp.window_log_folder(str(folder)))
    trip = Trip(holding(is_marked))
    flow = OneThread(app.build(), batch_records=1024)
    with trip.traced():
        flow.rest(within_ms=100)
        flow.end_epoch(1)
    flow.stop()
    return trip


_PROGRAM: Final = """
import gearpy as gp
from pathlib import Path

def work(n):
    Path({file!r}).touch()
    return n

app = gp.StreamApp({name!r})
app.read(gp.collection(range(3))).map(work).key_by(lambda n: n).count().write(gp.to_list([]))
"""


def trip_of_program(folder: Path) -> Trip:
    file = folder / f"{MARK}.py"
    begun = folder / "begun"
    file.write_text(_PROGRAM.format(file=str(begun), name=MARK), encoding="ascii")
    hashes: set[str] = set()

    def is_program(value: Any) -> bool:
        if isinstance(value, StreamApplication):
            return getattr(value, "name", "") == MARK  # It may be just being made.
        return is_marked(value) or (isinstance(value, str) and value in hashes)

    trip = Trip(holding(is_program))
    with trip.traced(), LocalCluster(from_overrides({"log.folder": str(folder)})) as cluster:
        artifact = upload(cluster.ask, str(file), cluster.config)
        hashes.add(artifact.location)
        cluster.client.submit(MARK, artifact, executors=1)
        eventually(begun.exists)
    return trip


#: Records of the epoch, and answers to people.
_NOT_STORED: Final = {*_TOLD, "gearpy.messages.client", "gearpy.messages.data"}


def trip_of_epoch() -> Trip:
    """The state of a task at the end of an epoch, until the epoch is committed."""
    epochs: list[int] = []

    def is_of_epoch(value: Any) -> bool:
        if type(value) is TaskSnapshot and not epochs:
            epochs.append(value.epoch)
        if isinstance(value, bytes) and epochs:
            return is_marked(value)  # Its state.
        is_struct = dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct)
        is_stated = is_struct and type(value).__module__ not in _NOT_STORED
        return is_stated and bool(epochs) and getattr(value, "epoch", 0) == epochs[0]

    def app() -> gp.StreamApp:
        made = gp.StreamApp("trip")
        rows = made.read(gp.generate(lambda _: ({"user": MARK, "n": n} for n in count()), rate=100))
        rows.key_by("user").count().write(gp.to_list([]))
        return made

    cluster = ClusterSimulation(1, workers=1)
    cluster.submit(app, executors=1)
    trip = Trip(holding(is_of_epoch))
    with trip.traced():
        cluster.world.run(lambda: bool(epochs), within_ms=10_000)
        cluster.world.run(lambda: False, within_ms=150)
    return trip


def main() -> None:
    with TemporaryDirectory(prefix="gearpy-trips-") as text:
        for name in ("record", "program"):
            (Path(text) / name).mkdir()
        trips = {
            "record reader -> keyed window -> window log": trip_of_record(Path(text) / "record"),
            "submit -> task": trip_of_program(Path(text) / "program"),
            "snapshot -> commit": trip_of_epoch(),
        }
    for name, trip in trips.items():
        sys.stdout.write(f"{name}: {trip}\n")
        if "--all" in sys.argv:
            for each in (*sorted(trip.modules), ", ".join(sorted(trip.forms))):
                sys.stdout.write(f"    {each}\n")


if __name__ == "__main__":
    main()
