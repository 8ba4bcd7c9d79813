"""``gear state``: what the steps of an application keep, as people and programs read it."""

import csv
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import WRONG_USE
from gearpy.cluster.embedded.output import NO_READER
from gearpy.state.keyed import KeyedState
from gearpy.storage.checkpoints import checkpoints_at
from tests.cli.test_commands_page import EXAMPLES_OF_STATE, PAGE, plain
from tests.cluster.state_build import PREFIX, a_kept_application

State = Callable[..., str]


def visits(state: KeyedState) -> None:
    kept, pages = state.value("visits", coder="int", default=0), state.set("pages")
    for state.key, page in [("ada", "home"), ("bob", "home"), ("ada", "cart"), ("ada", "home")]:
        kept.set(kept.get() + 1)
        pages.add(page)


@pytest.fixture
def state(tmp_path: Path) -> State:
    """Return ``gear state``, for a store; what it says on standard error if it fails."""
    folder = tmp_path / "checkpoints"
    a_kept_application(checkpoints_at(folder), [visits, visits])

    def run(*args: str, code: int = 0) -> str:
        command = ["state", *args, "--checkpoints", str(folder)]
        result = CliRunner(env={"COLUMNS": "120"}).invoke(app, command)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.stderr
        return str(result.stderr if code == WRONG_USE else result.stdout)

    return run


@pytest.mark.parametrize(("command", "shown"), EXAMPLES_OF_STATE)
def test_a_command_prints_what_the_page_shows(command: str, shown: str, state: State) -> None:
    """Who compares the two finds them equal."""
    assert plain(state(*shlex.split(command)[1:])) == plain(shown)


def test_the_page_has_examples() -> None:
    assert {command.split()[1] for command, _ in EXAMPLES_OF_STATE} == {"list", "query"}
    assert PAGE.exists()


def test_a_query_tells_programs_of_which_epoch_it_is(state: State) -> None:
    found = json.loads(state("query", "3", "Visits", "--state", "visits", "--epoch", "1", "--json"))

    assert found.pop("rows")[0].keys() == {"key", "value", "key_group"}
    assert found == {
        "application": PREFIX,
        "step": "visits-1",
        "state": "visits",
        "epoch": 1,
        "region": 0,
        "clock_ms": 5000,
        "stored_ms": 1_767_268_800_000,
        "exact": True,
    }
    listed = json.loads(state("list", "3", "--json"))["states"]
    assert [each["state"] for each in listed] == ["pages", "visits"]


_SQL: Final = "select key, value from visits order by key"


def test_csv_is_for_spreadsheets(state: State) -> None:
    rows = csv.reader(io.StringIO(state("query", "3", "Visits", _SQL, "--format", "csv")))

    assert [*rows] == [["key", "value"], ["ada", "6"], ["bob", "2"]]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_of_columns_are_read_by_other_programs(
    state: State, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "out"
    assert state("query", "3", "Visits", _SQL, "--format", form, "-o", str(file)) == ""

    table = pq.read_table(file) if form == "parquet" else pa.ipc.open_stream(file).read_all()
    assert table.to_pylist() == [{"key": "ada", "value": 6}, {"key": "bob", "value": 2}]


def test_a_long_table_is_cut_and_says_so(tmp_path: Path) -> None:
    def many(state: KeyedState) -> None:
        kept = state.value("visits", coder="int")
        for state.key in range(250):
            kept.set(1)

    a_kept_application(checkpoints_at(tmp_path), [many])
    command = ["state", "query", "shop", "1", "--checkpoints", str(tmp_path)]

    cut = CliRunner().invoke(app, command)
    named = CliRunner().invoke(app, [*command, "--limit", "3"])

    assert len(cut.stdout.splitlines()) == 2 + 100
    assert "250 rows; 100 are shown, see --limit" in cut.stderr
    assert len(named.stdout.splitlines()) == 2 + 3
    assert not named.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("query", "3", "Visits"), "several states, pages, visits: name one with --state"),
        (("query", "3", "Nobody"), "no step 'Nobody'"),
        (("query", "3", "Visits", "select 1 from nothing"), "the query is refused"),
        (("query", "3", "Visits", _SQL, "-o", "/nowhere/x", "--json"), "cannot be written"),
        (("query", "3", "Visits", "--state", "pages", "--epoch", "7"), "no epoch 7"),
    ],
)
def test_mistakes_are_told_with_what_there_is(
    state: State, args: tuple[str, ...], told: str
) -> None:
    assert told in state(*args, code=WRONG_USE)


_WITHOUT: Final = {
    *("pandas.core", "dateutil._common", "numpy.ma", "pydantic", "asyncio"),
    "gearpy.cluster.client",
}
_IN_A_PROCESS: Final = """
import atexit
from gearpy.cli.main import main
atexit.register(print, "late")
main()
"""


def test_a_query_waits_for_nothing_that_it_does_without(tmp_path: Path) -> None:
    """Arrow would load pandas for the first column; at its end Python would free each object."""
    a_kept_application(checkpoints_at(tmp_path), [visits])
    query = ["shop", "Visits", "select count(*) from visits", "--json"]
    begin = [sys.executable, "-X", "importtime", "-c", _IN_A_PROCESS, "state", "query"]

    done = subprocess.run(
        [*begin, *query, "--checkpoints", str(tmp_path)], capture_output=True, text=True, check=True
    )

    (answer,) = done.stdout.splitlines()
    assert json.loads(answer)["rows"] == [{"count_star()": 2}]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert (
        "_duckdb" in loaded
    )  # Its part in C: of modules that are imported by name, the rest is not told.
    assert not loaded & _WITHOUT


def many_visits(state: KeyedState) -> None:
    for at in range(3000):
        state.key = f"visitor {at}" * 5
        state.value("visits", coder="int").set(at)


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path) -> None:
    a_kept_application(checkpoints_at(tmp_path), [many_visits])
    query = ["state", "query", "shop", "Visits", "--format", "csv", "--checkpoints", str(tmp_path)]

    with subprocess.Popen(
        [sys.executable, "-m", "gearpy", *query], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == NO_READER
