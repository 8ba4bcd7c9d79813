"""The pipeline in `examples/spark_pipeline`: clicks, window logs, tables of Spark, right answers.

How it is started, by ``spark-submit`` or ``spark-pipelines``, is not tested here: each of them
starts a JVM of its own. What they run is.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gearpy as gp
from tests.examples.program_modules import modules_of

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "examples" / "spark_pipeline"
PAGE: Final = ROOT / "docs" / "spark" / "pipeline.md"
MODULES: Final = ("batch", "clicks", "generate", "windows", "tables", "pipeline", "run")
EVENTS: Final = 1500


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Any]]:
    with modules_of(FOLDER, MODULES) as modules:
        yield modules


@pytest.fixture(scope="module")
def out(modules: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clicks")
    modules["generate"].make(modules["generate"].Traffic(events=EVENTS, seed=3), folder)
    gp.run(modules["windows"].build(folder))
    return folder


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_tables_of_spark_are_what_plain_python_finds(
    modules: dict[str, Any], out: Path, utc: SparkSession
) -> None:
    modules["pipeline"].build(utc, out)

    right = modules["batch"].answers(out)
    checks = modules["run"].compare(out, right)
    assert [check.name for check in checks] == [
        *("page_windows", "daily_sales", "daily_sessions", "top_pages"),
        *("late", "quarantine"),
    ]
    assert all(check.rows for check in checks), "nothing would be compared"
    assert not [check for check in checks if check.differences]


def test_nothing_is_written_of_logs_that_fail_a_check(
    modules: dict[str, Any], out: Path, utc: SparkSession, tmp_path: Path
) -> None:
    """A page that the dimension does not know would be missing in every sum: the job fails."""
    broken = tmp_path / "broken"
    shutil.copytree(out, broken, ignore=shutil.ignore_patterns("tables"))
    header, *rows = (broken / "pages.csv").read_text("utf-8").splitlines(keepends=True)
    (broken / "pages.csv").write_text(header + "".join(rows[1:]), "utf-8")

    with pytest.raises(PySparkException, match=r"check failed: pages are known: [0-9]+ do not"):
        modules["pipeline"].build(utc, broken)

    assert not list(broken.glob("tables/*/*.parquet"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("twice", "no window comes twice: 1 do not"),
        pytest.param("none", "there are windows: 1 do not", marks=pytest.mark.long),
        ("more", "sessions have the clicks of the windows: 5 do not"),
        pytest.param("long", "windows make sense: 1 do not", marks=pytest.mark.long),
    ],
)
def test_a_check_that_does_not_hold_says_so(
    damage: str, message: str, modules: dict[str, Any], spark: SparkSession
) -> None:
    bounds = "timestamp '2026-03-02 10:00:00' AS window_start, timestamp '2026-03-02 10:00:{}' AS"
    rest = "{} AS clicks, 1 AS purchases, 250 AS cents, 1 AS users, 0 AS firing"
    select = f"SELECT {bounds} window_end, 'p1' AS page, {rest}, 'on-time' AS timing"
    window: DataFrame = spark.sql(
        select.format(20 if damage == "long" else 10, 7 if damage == "more" else 2)
    )
    windows = {"twice": window.union(window), "none": window.limit(0)}.get(damage, window)
    session = window.selectExpr("*", "'u1' AS user").drop("clicks").selectExpr("*", "2 AS clicks")
    pages = spark.sql("SELECT 'p1' AS page")

    with pytest.raises(PySparkException, match=message):
        modules["tables"].checks(windows, session, window, pages).collect()


def test_no_click_need_be_late(
    modules: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    late = modules["tables"].log(spark.read, tmp_path, "late_log")

    assert late.count() == 0
    assert late.columns == ["user", "page", "kind", "cents", "event_time"]


def test_declarative_pipelines_find_every_table(
    modules: dict[str, Any], out: Path, spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.pipelines import graph_element_registry as registries  # noqa: PLC0415 - slow

    found: list[str] = []

    class Registry(registries.GraphElementRegistry):
        def register_output(self, output: Any) -> None:
            found.append(output.name)

        def register_flow(self, flow: Any) -> None:
            assert callable(flow.func)

        def register_auto_cdc_flow(self, flow: Any) -> None:
            raise AssertionError("there is none")

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            raise AssertionError("SQL is found in its files")

    spark.conf.set("spark.clicks.out", str(out))
    with registries.graph_element_registration_context(Registry()):
        source = (FOLDER / "transformations" / "datasets.py").read_text("utf-8")
        exec(compile(source, "datasets.py", "exec"), {"__name__": "datasets"})  # noqa: S102
    spark.conf.unset("spark.clicks.out")

    for name in modules["pipeline"].SQL:
        text = (FOLDER / "transformations" / f"{name}.sql").read_text("utf-8")
        with pytest.raises(PySparkException) as refused:
            spark.sql(text)
        assert refused.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND", "it is SQL at least"
    by_sql = {path.stem for path in (FOLDER / "transformations").glob("*.sql")}
    assert by_sql == set(modules["pipeline"].SQL)
    assert {*found, *by_sql} == {*modules["pipeline"].TABLES, *modules["tables"].LOGS, "pages"}


def test_a_deployed_pipeline_has_its_own_folders(modules: dict[str, Any], tmp_path: Path) -> None:
    """The specification reads and writes where the run does, and nowhere else."""
    spec = modules["run"].deploy(tmp_path)

    text = spec.read_text("utf-8")
    assert f"storage: file://{tmp_path}/storage\n" in text
    assert f"spark.clicks.out: {tmp_path}\n" in text
    assert modules["run"].SPEC_OUT not in text.replace(str(tmp_path), "")
    assert sorted(path.name for path in (spec.parent / "transformations").iterdir()) == sorted(
        ["daily_sales.sql", "daily_sessions.sql", "datasets.py", "top_pages.sql"]
    )


def test_a_folder_of_something_else_is_left_alone(modules: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")

    with pytest.raises(SystemExit, match="not of this program"):
        modules["run"].make_empty(tmp_path)

    assert (tmp_path / "thesis.txt").exists()


def test_clicks_are_as_they_are_said_to_be(modules: dict[str, Any], tmp_path: Path) -> None:
    """Few pages and evenings get most; a seed gives the same files again, another one others."""
    make, traffic = modules["generate"].make, modules["generate"].Traffic
    for seed, folder in ((1, "first"), (1, "again"), (2, "other")):
        (tmp_path / folder).mkdir()
        made = make(traffic(events=5000, seed=seed), tmp_path / folder)
    texts = [
        [file.read_text("utf-8") for file in sorted((tmp_path / folder / "events").iterdir())]
        for folder in ("first", "again", "other")
    ]
    right = modules["batch"].answers(tmp_path / "other")
    clicks = right.tables["page_windows"]
    evening = sum(n for row, n in clicks.items() if row[0].hour in range(18, 22))

    assert texts[0] == texts[1] != texts[2]
    assert made == (5000, 10)
    assert right.bad == 10
    assert 5 < right.late < 40
    assert evening > 0.25 * clicks.total()
    assert sum(n for row, n in clicks.items() if row[2] < "p010") > 0.3 * clicks.total()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "hover"}, "ValueError: the kind is 'hover'"),
        ({"cents": -1}, "ValueError: a view for -1 cents"),
        ({"kind": "purchase"}, "ValueError: a purchase for 0 cents"),
        ({"user": 7}, "TypeError: of wrong types"),
        ({"at": "2099-01-01T00:00:00Z"}, "ValueError: the clock says 2099"),
        ({"at": "2026-03-02T10:00:00"}, "TypeError: can't subtract"),
        ({"at": "noon"}, "ValueError: Invalid isoformat"),
    ],
)
def test_what_is_no_click_is_told_why(
    change: dict[str, Any], why: str, modules: dict[str, Any]
) -> None:
    """A line goes into quarantine with its reason, and a wrong clock is no time at all."""
    clicks = modules["clicks"]
    click = {"at": "2026-03-02T10:00:00.5Z", "user": "u1", "page": "p1", "kind": "view"}
    line = json.dumps(click | change)

    assert clicks.parse(json.dumps(click)) == clicks.Click("u1", "p1", "view", 0)
    assert clicks.parse(line).why.startswith(why)
    assert clicks.time_of(line) == (0 if "at" in change else 1_772_445_600_500)


def test_the_page_shows_the_example_as_it_is() -> None:
    files = [*FOLDER.glob("*.py"), *FOLDER.glob("transformations/*"), FOLDER / "spark-pipeline.yml"]
    programs = [file.read_text("utf-8") for file in files if file.is_file()]
    shown = re.findall(
        r"^```(?:text|sql|yaml)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )

    assert len(shown) >= 4
    for lines in shown:
        assert any(lines in text or indent(lines, " " * 4) in text for text in programs), lines


def test_the_page_shows_what_the_command_prints(modules: dict[str, Any]) -> None:
    text = PAGE.read_text("utf-8")

    for name in (*modules["pipeline"].TABLES, *modules["windows"].LOGS):
        assert re.search(rf"\b{name}\b", text), name
    assert "all answers agree" in text
