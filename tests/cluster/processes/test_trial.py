"""Programs that are loaded in processes of their own, whatever they do there."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from gearpy.cluster.processes.trial import ProgramTrials
from gearpy.cluster.programs.artifacts import ArgumentsRefused
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, OperatorError
from gearpy.messages.client import Artifact
from tests.eventually import eventually
from tests.system.cluster_build import is_gone

GOOD: Final = """\
import gearpy as gp
app = gp.StreamApp("good")
app.read(gp.collection([1, 2]), name="numbers").map(str, name="texts").write(gp.console())
"""
ONE_S: Final = 1
ENDED: Final = "it has ended its process while it was loaded"
_IMPORTS: Final = """\
from gearpy.cluster.processes.trial import ProgramTrials
from gearpy.config.schema import Config
from gearpy.messages.client import Artifact
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def program(self, text: str, name: str = "program.py", *args: str) -> Artifact:
        self._count += 1
        path = self.folder / f"v{self._count}" / name
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        return Artifact(kind="file", location=str(path), args=args)

    def stored(self, text: str) -> tuple[Artifact, Path]:
        """Return a program as it is uploaded, and the folder it was fetched to."""
        folder = Path(self.program(text).location).parent
        return Artifact(kind="stored", location=folder.name, filename="program.py"), folder

    def trials(self, *, timeout_s: int = 60, memory_max_bytes: int = 1 << 30) -> ProgramTrials:
        config = Config()
        limits = replace(
            config.application, load_timeout_s=timeout_s, load_memory_max_bytes=memory_max_bytes
        )
        return ProgramTrials(replace(config, application=limits))

    def why_not(self, text: str, *, timeout_s: int = 60) -> OperatorError:
        with pytest.raises(OperatorError) as refused:
            self.trials(timeout_s=timeout_s).load(self.program(text), None)
        return refused.value


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_graph_of_a_program_comes_as_plain_data(scene: Scene) -> None:
    outline, _ = scene.trials().load(scene.program(GOOD), None)

    (spec,) = outline.dag(7).processors.values()
    assert (outline.name, outline.runs, outline.dag(7).version) == ("good", "streams", 7)
    assert [step.name for step in spec.steps] == ["numbers", "texts", "console"]
    assert [path.guarantee.value for path in outline.paths] == ["at-least-once"]
    assert '"numbers"' in outline.plan


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        (
            "import os\nprint('bye')\nos._exit(3)\n",
            f"{ENDED}: exited with code 3: bye",
            "os._exit(3)",
        ),
        (
            "import ctypes\ndef f():\n    ctypes.string_at(0)\nf()\n",
            f"{ENDED}: killed by signal 11 (SIGSEGV)",
            "ctypes.string_at(0)",
        ),
        (
            "import os, signal\nprint('last')\nos.kill(os.getpid(), signal.SIGKILL)\n",
            f"{ENDED}: killed by signal 9 (SIGKILL), and had printed: last",
            "",
        ),
        (
            "while True:\n    print('x' * 1000)\n",
            "it has printed more than 16 MiB while it was loaded",
            "print('x' * 1000)",
        ),
    ],
)
def test_a_program_that_ends_its_process_is_refused(
    scene: Scene, text: str, cause: str, line: str
) -> None:
    error = scene.why_not(text)

    assert (error.operator, error.cause, error.source_line) == ("import program.py", cause, line)
    if line:
        assert error.source.endswith(f"v1/program.py:{text[: text.index(line)].count(chr(10)) + 1}")


@pytest.mark.parametrize("line", ["time.sleep(10**6)", "while True: pass"])
def test_a_program_that_is_never_loaded_is_refused_at_the_deadline(scene: Scene, line: str) -> None:
    error = scene.why_not(f"import time\ndef f():\n    {line}\nf()\n", timeout_s=ONE_S)

    assert error.source_line == line
    assert error.cause == (
        "it is not loaded after 1 s: raise application.load-timeout-seconds if it needs longer"
    )


def test_a_program_gets_no_more_memory_than_it_may_have(scene: Scene) -> None:
    error = scene.why_not("kept = []\nwhile True:\n    kept.append(bytearray(64 << 20))\n")

    assert "MemoryError" in error.cause
    assert error.cause.endswith(
        "raise application.load-memory-max-bytes if it needs more memory to be loaded"
    )
    assert error.source_line == "kept.append(bytearray(64 << 20))"


@pytest.mark.parametrize("end", ["os._exit(1)", "time.sleep(10**6)"])
def test_nothing_is_left_of_a_program_that_was_refused(scene: Scene, end: str) -> None:
    note = scene.folder / "pids"
    scene.why_not(
        "import os, time, subprocess\n"
        "first = subprocess.Popen(['sleep', '1000'])\n"
        "other = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(f'{{first.pid}} {{other.pid}}')\n"
        f"{end}\n",
        timeout_s=5,
    )

    pids = [int(each) for each in note.read_text().split()]
    eventually(lambda: all(map(is_gone, pids)))


def test_what_the_program_itself_raises_comes_with_its_line(scene: Scene) -> None:
    error = scene.why_not("rate = 1\nprint(rate / 0)\n")

    assert (error.cause, error.source_line) == (
        "ZeroDivisionError: division by zero",
        "print(rate / 0)",
    )
    with pytest.raises(ConfigError, match="no application in"):
        scene.trials().load(scene.program("x = 1\n"), None)
    with pytest.raises(ArgumentsRefused, match="takes no arguments, got a b"):
        scene.trials().load(scene.program(GOOD, "program.py", "a", "b"), None)


COUNTS: Final = """\
import gearpy as gp
STEP = 1
def more(each):
    return each + STEP
app = gp.StreamApp("good", parallelism=1)
app.read(gp.collection([1, 2]), name="numbers").map(more, name="more").write(gp.console())
"""


def test_a_program_is_compared_with_the_one_that_runs(scene: Scene) -> None:
    """Both are loaded side by side; all that is different is told."""
    old, old_folder = scene.stored(COUNTS)
    new, new_folder = scene.stored(COUNTS.replace("STEP = 1", "STEP = 2"))
    running, _ = scene.trials().load(old, old_folder)

    outline, found = scene.trials().load(new, new_folder, compared=(old, old_folder))

    (pid,) = outline.dag().order
    assert found.between(running.dag(), pid, pid) == ("in STEP, 1 has become 2", True)
    _, same = scene.trials().load(old, old_folder, compared=(old, old_folder))
    assert same.between(running.dag(), pid, pid) == ("", False)


@pytest.mark.parametrize("line", ["os._exit(3)", "raise ValueError('gone')"])
def test_a_program_that_runs_and_is_not_loaded_once_more_is_unlike_all(
    scene: Scene, line: str
) -> None:
    new = scene.program(COUNTS)
    running, _ = scene.trials().load(new, None)
    old = scene.program(f"import os\n{line}\n{COUNTS}")

    outline, found = scene.trials().load(new, None, compared=(old, None))

    (pid,) = outline.dag().order
    assert found.between(running.dag(), pid, pid)[0].startswith("what runs ")


def test_the_end_of_who_waits_is_that_of_the_process(scene: Scene) -> None:
    note = scene.folder / "pid"
    text = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    load = f"load(Artifact(kind='file', location={scene.program(text).location!r}), None)"
    waiting = subprocess.Popen([sys.executable, "-c", f"{_IMPORTS}ProgramTrials(Config()).{load}"])
    eventually(lambda: note.exists() and bool(note.read_text()))
    waiting.kill()
    waiting.wait()

    eventually(lambda: is_gone(int(note.read_text())))
