"""A cluster of processes, programs for it, and the command line that talks to it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from msgspec import to_builtins
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.connect import connected
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import DescribeApplication, GetApplication, ListWorkers
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import DEADLINE_S, eventually

GEAR: Final = (sys.executable, "-P", "-m", "gearpy")

#: Short pauses, so that what is restarted a few times is soon done with that.
_SETTINGS: Final = {
    "checkpoint.keep-succeeded": "0",
    "application.backoff-base-ms": "10",
    "checkpoint.interval-ms": "100",
}
_OF_WORKERS: Final = {"executor.memory-max-bytes": "1000000000"}

_SIDE: Final = """\
import gearpy as gp
from prices import price

def main(args):
    app = gp.StreamApp("side")
    app.read(gp.collection([1, 2, 3])).map(price).map(str).write(gp.text_file(args[0]))
    return app
"""
_PACKAGED: Final = """\
import gearpy as gp
from shop.prices import price

def main(args):
    app = gp.StreamApp("shop")
    app.read(gp.collection([1, 2, 3])).map(price).map(str).write(gp.text_file(args[0]))
    return app
"""
_PRICES: Final = "def price(n):\n    return n * 10\n"

#: Counts, and writes what it counts; stops when the file ``stop`` is there.
_COUNT: Final = """\
import itertools, os
import gearpy as gp

def main(args):
    name, out = args

    def check(n):
        if n == 30 and not os.path.exists(out + ".raised"):
            open(out + ".raised", "w").close()
            raise ValueError("only once")
        if n % 50 == 7 and not os.path.exists(out + ".good"):
            raise ValueError(f"no price for {n}")
        return n

    def numbers():
        for n in itertools.count():
            if os.path.exists(out + ".stop"):
                return
            yield n

    app = gp.StreamApp(name)
    app.read(gp.generate(numbers, rate=200)).map(check).map(str).write(gp.text_file(out))
    return app
"""
_POISON: Final = """\
import gearpy as gp

def price(order):
    return float(order["price"])

app = gp.StreamApp("poison")
orders = [{"id": n, "price": "n/a" if n == 7 else n} for n in range(10)]
app.read(gp.collection(orders)).map(price).map(str).write(gp.console())
"""
#: Does in an executor what processes die of.
_DIES: Final = """\
import ctypes, os, sys
from itertools import count
import gearpy as gp

def main(args):
    what = args[0]
    if what == "import" and "executor" in os.getcwd():
        import no_such_module
    function = str
    if what == "differs" and "executor" in os.getcwd():
        function = repr

    def die(n):
        if what == "exit":
            print("my last words", file=sys.stderr, flush=True)
            os._exit(3)
        if what == "crash":
            ctypes.string_at(0)
        if what == "memory":
            return len([bytearray(50_000_000) for _ in range(100)])
        if what == "child" and n == 0:
            import subprocess
            print("started", subprocess.Popen(["sleep", "600"]).pid, flush=True)
        return n

    app = gp.StreamApp(what)
    source = gp.generate(count, rate=20) if what == "child" else gp.collection([1])
    app.read(source).map(die).map(function).write(gp.console())
    return app
"""
#: Stands still in one call, the first time.
_HANGS: Final = """\
import os, time
import gearpy as gp

def main(args):
    out = args[0]

    def stand(n):
        if n == 30 and not os.path.exists(out + ".stood"):
            open(out + ".stood", "w").close()
            time.sleep(1000)
        return n

    app = gp.StreamApp("hangs")
    numbers = app.read(gp.generate(lambda: range(100), rate=200)).map(abs).map(stand)
    numbers.key_by(lambda n: n % 2).reduce(max).map(lambda pair: pair[1]).write(
        gp.jsonl_folder(out)
    )
    return app
"""
_PROGRAMS: Final = {
    "side/main_s.py": _SIDE,
    "side/prices.py": _PRICES,
    "shop/__init__.py": "",
    "shop/app.py": _PACKAGED,
    "shop/prices.py": _PRICES,
    "count.py": _COUNT,
    "poison.py": _POISON,
    "dies.py": _DIES,
    "hangs.py": _HANGS,
}


def gear(*args: str, settings: Mapping[str, str], code: int = 0) -> str:
    """Run a command that ends with a code; return what it printed, or said if it failed.

    In this process, which saves the time of loading it each time; `test_cli` runs some as a
    shell does.
    """
    unset = dict.fromkeys(key for key in os.environ if key.startswith("GEARPY_"))
    done = CliRunner(env={**unset, **_variables(settings)}).invoke(app, args)
    assert done.exit_code == code, (args, done.stdout, done.stderr, done.exception)
    return done.stderr if code else done.stdout + done.stderr


class Scene:
    """A cluster, a folder of programs, and what a user does with them."""

    def __init__(
        self, folder: Path, *, workers: int = 2, slots: int = 8, more: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        settings = {**_SETTINGS, **_OF_WORKERS, **(more or {})}
        (folder / "cluster").mkdir()
        self.cluster = ProcessCluster(
            folder / "cluster", workers=workers, slots=slots, settings=settings
        )
        _write_programs(folder)
        of_clients = {k: v for k, v in self.cluster.settings.items() if k not in _OF_WORKERS}
        self.settings = of_clients

    def gear(self, *args: str, code: int = 0) -> str:
        """Run a command in the folder of the programs; see `gear`."""
        with chdir(self.folder):
            return gear(*args, settings=self.settings, code=code)

    def ask(self, *args: str) -> Any:
        return json.loads(self.gear(*args, "--json"))

    def submit(self, *args: str) -> int:
        place = args.index("--") if "--" in args else len(args)
        words = ("app", "submit", *args[:place], "--json", *args[place:])
        number: int = json.loads(self.gear(*words))["app_id"]
        return number

    def summary(self, app_id: int) -> dict[str, Any]:
        """Return an application, asked without a process for it, as tests ask often."""
        with connected(self.cluster.config) as client:
            found: dict[str, Any] = to_builtins(client.ask(GetApplication(app_id=AppId(app_id))))
            return found

    def detail(self, app_id: int) -> dict[str, Any] | None:
        with connected(self.cluster.config) as client:
            try:
                found: dict[str, Any] = to_builtins(
                    client.ask(DescribeApplication(app_id=AppId(app_id)))
                )
                return found
            except GearpyError:
                return None

    def ends(self, app_id: int) -> dict[str, Any]:
        """Wait until an application has ended; return its summary."""
        running = {"pending", "active"}
        last: dict[str, Any] = eventually(
            lambda: (now := self.summary(app_id))["status"] not in running and now
        )
        return last

    def has_nothing_left(self) -> bool:
        with connected(self.cluster.config) as client:
            workers = client.ask(ListWorkers()).workers
        base = self.folder / "cluster"
        left = [*(base / "checkpoints").glob("*/*"), *(base / "worker").glob("worker-*/*")]
        return all(each.free_slots == each.slots for each in workers) and not left


def _write_programs(folder: Path) -> None:
    for name, text in _PROGRAMS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: shop\nVersion: 1.0\nRequires-Dist: msgpack\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    for name in ("shop.zip", "shop-1.0-py3-none-any.whl"):
        with ZipFile(folder / name, "w") as archive:
            for path in sorted((folder / "shop").iterdir()):
                archive.write(path, f"shop/{path.name}")
            for key, text in metadata.items():
                archive.writestr(f"shop-1.0.dist-info/{key}", text)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with this configuration and no other, in which this code is found."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("GEARPY_")}
    return {**kept, **_variables(settings), "PYTHONPATH": str(Path(__file__).parents[2])}


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    return {re.sub("[.-]", "_", f"gearpy.{key}").upper(): text for key, text in settings.items()}


def descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from descendants(child)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ended(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[int, str, str]:
    """Send a signal and wait; return the exit code and what was printed and said."""
    process.send_signal(number)
    out, said = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, said
