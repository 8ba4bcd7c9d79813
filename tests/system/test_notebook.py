"""A notebook: a real Jupyter kernel runs cells, and what it shows is what people see."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

DEADLINE_S: Final = 120
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


class Shown:
    """What a cell has shown: text of streams, its last HTML, and the traceback of an error."""

    def __init__(self) -> None:
        self.text = ""
        self.html = ""
        self.plain = ""
        self.traceback = ""
        self.display_id = ""

    def take(self, message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            self.text += content["text"]
        elif message["msg_type"] == "error":
            self.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))
        elif "data" in content and message["msg_type"] != "update_display_data":
            self.html = content["data"].get("text/html", "")
            self.plain = content["data"].get("text/plain", "")
            self.display_id = content.get("transient", {}).get("display_id", "")


class Notebook:
    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager = manager
        self._client = client
        self._displays: dict[str, str] = {}

    def run(self, cell: str) -> Shown:
        shown, number = Shown(), self._client.execute(cell, allow_stdin=False)
        while True:
            message = self._next()
            if message["parent_header"].get("msg_id") == number:
                if message["content"].get("execution_state") == "idle":
                    return shown
                shown.take(message)

    def until(self, shown: Shown, text: str) -> None:
        """Wait until the display of a cell has been brought up to date with a text."""
        while text not in self._displays[shown.display_id]:
            self._next()

    def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = self._client.get_iopub_msg(timeout=DEADLINE_S)
        if display := message["content"].get("transient", {}).get("display_id"):
            self._displays[display] = message["content"]["data"]["text/html"]
        return message


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    manager, client = start_new_kernel(startup_timeout=DEADLINE_S, cwd=str(tmp_path))
    try:
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


STREAM: Final = """
import itertools
import gearpy as gp

app, results = gp.StreamApp("numbers"), []
squares = app.read(gp.generate(itertools.count, rate=2000)).map(lambda n: n * n)
squares.write(gp.to_list(results))
run = gp.start(app)
run
"""


def test_a_user_tries_a_stream_and_runs_it_again(notebook: Notebook) -> None:
    """Cells show a plan, records and a run that goes on; the second run replaces the first."""
    first = notebook.run(STREAM)
    assert not first.traceback
    notebook.until(first, "<svg")
    notebook.until(first, "/s)")  # A rate.

    assert "<svg" in notebook.run("squares").html
    assert "<td" in notebook.run("squares.head(3)").html
    assert notebook.run("squares.to_list(3)").plain == "[0, 1, 4]"
    frame = notebook.run("squares.to_pandas(3)")
    assert all(each in frame.html for each in ("value", "event_time", "<td>4</td>"))

    again = notebook.run(STREAM)
    assert "numbers was started before: that run is stopped first" in again.text
    assert notebook.run("run.stop()").html.startswith("<div><b>numbers</b> drained")
    notebook.until(again, "it was drained")
    notebook.until(first, "it was drained")
    assert notebook.run("results == [n * n for n in range(len(results))]").plain == "True"


def test_an_error_is_shown_without_the_frames_of_gearpy(notebook: Notebook) -> None:
    shown = notebook.run(
        "import gearpy as gp\n"
        "gp.StreamApp('bad').read(gp.collection([1, 0])).map(lambda n: 1 // n).to_list()"
    )

    assert "OperatorError: operator 'map(lambda)': ZeroDivisionError" in shown.traceback
    assert "record  0" in shown.traceback
    assert "errors.py" not in shown.traceback
    assert "gearpy/cluster" not in shown.traceback


def test_a_kernel_that_is_shut_down_ends_its_runs(notebook: Notebook, tmp_path: Path) -> None:
    notebook.run(STREAM.replace("gp.to_list(results)", "gp.jsonl_folder('out')"))
    notebook.run("while not run.summary.progress.records_in: run.wait(0.05)")

    notebook.manager.shutdown_kernel()

    lines = [
        line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().split()
    ]
    assert sorted(map(int, lines)) == [n * n for n in range(len(lines))]
    assert lines


def test_cells_run_on_several_processes(notebook: Notebook) -> None:
    """They have what cells have defined, and show what they print; again, as cells are."""
    notebook.run("import gearpy as gp, os\nhome, factor = os.getpid(), 10")
    cell = """
results = []
app = gp.StreamApp("cells")
numbers = app.read(gp.collection([1, 2, 3, 4], partitions=2))
def times(n):
    if n == 4:
        print("four here" if os.getpid() == home else "four elsewhere")
    return n * factor
scaled = numbers.map(times)
scaled.write(gp.to_list(results))
scaled.filter(lambda n: n == 20).write(gp.console())
{run}
sorted(results)
"""
    for run in ("gp.run(app, processes=2)", "gp.start(app, processes=2).wait()"):
        shown = notebook.run(cell.format(run=run))

        assert (shown.plain, shown.traceback) == ("[10, 20, 30, 40]", "")
        assert sorted(shown.text.splitlines()) == ["20", "four elsewhere"]
