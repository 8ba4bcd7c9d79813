"""The documentation does what it says: programs run, commands answer, links and diagrams hold."""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import gearpy.connectors
import gearpy.dsl
import gearpy.spark
import gearpy.testing
from gearpy.config.schema import SETTINGS
from gearpy.core.app import deployment
from gearpy.core.master import registry
from gearpy.task.time.late import SOURCE_LATE, WINDOW_LATE
from tests.eventually import DEADLINE_S

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
CONTRIBUTING: Final = ROOT / "docs" / "CONTRIBUTING.md"
PAGES: Final = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "changes"
)
GEAR: Final = (sys.executable, "-m", "gearpy")

#: Modules whose examples users read in `help()`.
WITH_EXAMPLES: Final = [
    module.name
    for package in (gearpy.connectors, gearpy.dsl, gearpy.testing)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]

#: Started and warm sooner, slower once warm: pages are over before that.
SPARK_DEFAULTS: Final = """
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.sql.shuffle.partitions 2
"""

#: Where the folder of a page's commands is for its readers.
HOME: Final = "/home/ada"
_FENCED: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
#: A key of the configuration in running text, perhaps with a value; some of them are code.
_KEY: Final = re.compile(r"`([a-z]+(?:-[a-z]+)*\.[a-z]+(?:-[a-z]+)*)(?:\s?=\s?[^`]*)?`")
_CODE: Final = frozenset({"state.key", "state.namespace"})
_SECONDS: Final = re.compile(r"\d+\.\d s")
_PROGRESS: Final = re.compile(r"^\d+ s  [\d,]+ records  .*\n", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give all pages one folder, so that they share a JVM: its working directory never changes.

    The settings of that JVM are in a file, as pages ask for a session without any.
    """
    settings = tmp_path_factory.mktemp("conf")
    (settings / "spark-defaults.conf").write_text(SPARK_DEFAULTS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(settings))
        gearpy.spark.stop()  # One that another test of this process has left is elsewhere.
        yield tmp_path_factory.mktemp("home")
        gearpy.spark.stop()


@pytest.fixture(autouse=True)
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every page an empty folder, and no configuration from outside."""
    for name in [name for name in os.environ if name.startswith("GEARPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(home)
    for left in home.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    return home


def _runnable_pages() -> Iterator[Any]:
    for page in PAGES:
        if page == CONTRIBUTING:
            continue  # Its pieces of code are parts of files, not programs.
        # A JVM for two pages takes as much CPU as all others; `tests/spark` runs the same steps.
        needs_jvm = page.name in {"data-source.md", "spark-sink.md"}
        marks = [pytest.mark.long] if needs_jvm else []
        yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [*_runnable_pages()])
def test_a_page_prints_what_it_says(page: Path) -> None:
    namespace: dict[str, Any] = {}
    blocks = _blocks(page)

    for number, block in enumerate(blocks):
        if block.language == "python":
            namespace["__name__"] = _save(block) or "__main__"
            after = blocks[number + 1] if number + 1 < len(blocks) else Block("", "")
            printed = _printed_by(block, namespace)

            assert printed == (after.text if after.language == "text" else ""), block.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_answer_as_it_says(page: Path, folder: Path) -> None:
    for block in _blocks(page):
        if block.language == "python":
            _save(block)
        for command, shown in _commands(block):
            answer = subprocess.run(
                [*GEAR, *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )

            assert _plain(answer.stdout, folder) == _plain(shown, folder), command


def test_the_program_of_the_readme_prints_what_stands_below_it() -> None:
    """Who pastes it sees the same; it needs no file."""
    blocks = list(_blocks(README))
    program, shown = next(
        (first, second)
        for first, second in pairwise(blocks)
        if (first.language, second.language) == ("python", "text")
    )

    assert len([line for line in program.text.splitlines() if line]) <= 12
    assert _printed_by(program, {"__name__": "__main__"}).splitlines() == shown.text.splitlines()


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = [
        link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link
    ]

    broken = [target for target in targets if not (page.parent / target).exists()]

    assert not broken, broken


def test_contributing_names_files_that_are_there() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:conf|docs|gearpy|tests)/[\w/]+(?:\.\w+)?", text))

    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []
    assert len(named) > 10, "the recipes name files"


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_keys_of_the_configuration_exist(page: Path) -> None:
    sections = {key.rpartition(".")[0] for key in SETTINGS}

    named = {key for key in _KEY.findall(page.read_text(encoding="utf-8")) if key not in _CODE}

    unknown = {key for key in named - SETTINGS.keys() if key.rpartition(".")[0] in sections}
    assert not unknown, unknown


@pytest.mark.parametrize("key", ["checkpoint.cut", "state.backend"])
def test_policies_are_explained(key: str) -> None:
    pages = [ROOT / "docs/exactly-once.md", ROOT / "docs/state.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)

    (table,) = re.findall(
        rf"^\| `{re.escape(key)}` \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE
    )

    rows = re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE)
    assert sorted(rows) == sorted(SETTINGS[key].choices)


@pytest.mark.parametrize(
    ("place", "policies"), [(2, SOURCE_LATE), (3, WINDOW_LATE)], ids=["source", "window"]
)
def test_policies_for_late_records_are_explained(place: int, policies: Sequence[str]) -> None:
    text = (ROOT / "docs/exactly-once.md").read_text(encoding="utf-8")

    rows = [line.split("|") for line in re.findall(r'^\| `"[a-z]+"` \|.*$', text, re.MULTILINE)]

    explained = [row[1].strip(' `"') for row in rows if row[place].strip()]
    assert sorted(explained) == sorted(policies)


@pytest.mark.parametrize(
    "table", [deployment.TRANSITIONS, registry.TRANSITIONS], ids=["tasks", "app"]
)
def test_state_diagrams_are_those_of_the_code(table: Mapping[tuple[str, str], str]) -> None:
    drawn = [
        block.text for block in _blocks(ROOT / "docs/design.md") if block.language == "mermaid"
    ]

    assert _diagram(table) in drawn, f"put this on the page:\n{_diagram(table)}"


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_are_right(name: str) -> None:
    module = importlib.import_module(name)

    results = doctest.testmod(module)

    assert results.failed == 0


def _blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _FENCED.findall(page.read_text(encoding="utf-8"))]


def _printed_by(block: Block, namespace: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block.text, "<page>", "exec"), namespace)  # noqa: S102 - that is the test
    return out.getvalue()


def _save(block: Block) -> str:
    """Put a program whose first line names a file into that file; return the module's name."""
    match = re.match(r"# (\w+)\.py\n", block.text)
    if match is None:
        return ""
    Path(f"{match[1]}.py").write_text(block.text, encoding="utf-8")
    return match[1]


def _commands(block: Block) -> list[tuple[list[str], str]]:
    """Return the commands that can be run here, with what the page shows below them."""
    if block.language != "console":
        return []
    parts = [part.partition("\n") for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    runnable = re.compile(r"bin/gear ((run|plan|chaos) \w+\.py|config check)")
    return [(line.split()[1:], shown) for line, _, shown in parts if runnable.match(line)]


def _plain(text: str, folder: Path) -> str:
    """Leave out what depends on the machine, such as what a run tells that has to wait for it."""
    told = _PROGRESS.sub("", text.replace(str(folder), HOME))
    return _SECONDS.sub("0.0 s", told)


def _diagram(table: Mapping[tuple[str, str], str]) -> str:
    """Draw a state machine for Mermaid, whose names may not contain hyphens."""
    first, _ = next(iter(table))
    lasts = dict.fromkeys(new for new in table.values() if all(old != new for old, _ in table))
    arrows = [
        f"[*] --> {first}",
        *(f"{old} --> {new}: {event}" for (old, event), new in table.items()),
        *(f"{last} --> [*]" for last in lasts),
    ]
    lines = ("    " + _mermaid_names(arrow) for arrow in arrows)
    return "\n".join(["stateDiagram-v2", *lines, ""])


def _mermaid_names(arrow: str) -> str:
    states, colon, event = arrow.partition(": ")
    return re.sub(r"(?<=\w)-(?=\w)", "_", states) + colon + event


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """`bin/docs` refuses a page that is not; this says it sooner."""
    navigation = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["NAVIGATION"]
    named = [f"{name}.md" for names in navigation.values() for name in names]
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES]

    assert sorted(named) == sorted(page for page in pages if not page.startswith("adr/"))


def test_folders_that_the_design_names_are_there() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.partition("### Which folder to open")[2].partition("\n\nThe docstring")[0]
    named = re.findall(r"`([a-z_/]+)`", table.partition("|\n")[2])

    assert len(named) > 40
    assert [each for each in named if not (ROOT / "gearpy" / each).is_dir()] == []


def test_the_table_of_layers_is_the_contract() -> None:
    """`pyproject.toml` is what the check verifies; the page shows the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == "imports point down")
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")

    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| \S", page, re.MULTILINE)

    assert [(int(layer), package) for layer, package in rows] == [
        (len(layers) - place, package)
        for place, row in enumerate(layers, 1)
        for package in row.split(" | ")
    ]
