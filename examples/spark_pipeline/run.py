"""All of it by one command: make clicks, stream them, hand over to Spark, and check every answer.

    python examples/spark_pipeline/run.py --events 200000 --seed 7 --out /tmp/clicks

1. `generate` writes files of clicks.
2. `windows`, the gearpy program, makes window logs of them.
3. Spark makes tables of the logs: `pipeline` by ``spark-submit``, or, with ``--with pipelines``,
   the definitions in `transformations` by ``spark-pipelines run``.
4. `batch` computes the same tables in plain Python, and they are compared row by row.

The folder has it all afterwards, and what Spark said in ``spark.log``.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple, TypeVar

try:
    import batch
    import generate
    import pyarrow as pa  # type: ignore[import-untyped]
    import windows
    from pyarrow import dataset

    import gearpy as gp
    import gearpy.spark
    from gearpy.windowlog.log import WindowLog
except ModuleNotFoundError as _missing:
    raise SystemExit(
        f"{_missing.name} is not installed here: pip install 'gearpy-streaming[spark]', or, in a "
        "clone, bin/gear main examples/spark_pipeline/run.py"
    ) from None

__all__ = ["Check", "compare", "deploy", "main", "make_empty"]

T = TypeVar("T")

HERE: Final = Path(__file__).resolve().parent
#: What the checked-in specification of the pipeline has where the folder belongs.
SPEC: Final = "spark-pipeline.yml"
SPEC_OUT: Final = "/tmp/clicks"  # noqa: S108 - of the specification; nothing is written there
#: Lines of Spark's log that are shown when it fails.
SHOWN: Final = 15


class Check(NamedTuple):
    """One comparison: how much there is, and how much of it one side alone has."""

    name: str
    rows: int
    differences: int


def main() -> int:
    """Run all steps, print the report, and return 1 if an answer is wrong."""
    options = _parser().parse_args()
    out: Path = options.out.resolve()
    gearpy.spark.java_home()  # Refused before all the work, where there is no Spark or no Java.
    if options.runner == "pipelines":
        _check_packages()
    make_empty(out)
    made = _step("generate", lambda: _generate(options, out), _made)
    _step("gearpy", lambda: _stream(out))
    _step("spark", lambda: _spark(options.runner, out))
    right = _step("batch", lambda: _batch(out), lambda _: "plain Python, to compare with")
    checks = [*compare(out, right), Check("bad lines", made.bad, abs(made.bad - right.bad))]
    return _report(checks)


def compare(out: Path, right: batch.Answers) -> list[Check]:
    """Compare all tables, and what went aside, with the right answers."""
    checks = []
    for name, wanted in right.tables.items():
        found = table_rows(out / "tables" / name)
        differences = (wanted - found).total() + (found - wanted).total()
        checks.append(Check(name, found.total(), differences))
    for name, number, aside in (
        ("late", right.late, _rows_of(out / "logs" / "late")),
        ("quarantine", right.bad, _lines_of(out / "quarantine")),
    ):
        checks.append(Check(name, aside, abs(number - aside)))
    return checks


def table_rows(folder: Path) -> batch.Rows:
    """Return the rows of a table that Spark has written, the day in the name of a folder last."""
    days = dataset.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    parts = days if any(folder.glob("day=*")) else None
    table = dataset.dataset(folder, format="parquet", partitioning=parts).to_table()
    fields = [
        pa.field(field.name, pa.timestamp("us", "UTC"))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return batch.Rows(tuple(row.values()) for row in table.cast(pa.schema(fields)).to_pylist())


def deploy(out: Path) -> Path:
    """Copy the declarative pipeline, made to use this folder; return its specification."""
    target = out / "pipeline"
    shutil.copytree(
        HERE / "transformations",
        target / "transformations",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    text = (HERE / SPEC).read_text(encoding="utf-8")
    (target / SPEC).write_text(text.replace(SPEC_OUT, str(out)), encoding="utf-8")
    return target / SPEC


def make_empty(out: Path) -> None:
    """Make the folder, or remove what an earlier run has left there."""
    if out.exists() and any(out.iterdir()) and not (out / "pages.csv").is_file():
        raise SystemExit(f"{out} has files that are not of this program: take another folder")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


# -- the steps -----------------------------------------------------------------------------------


def _generate(options: argparse.Namespace, out: Path) -> generate.Made:
    traffic = generate.Traffic(events=options.events, seed=options.seed)
    return generate.make(traffic, out)


def _made(made: generate.Made) -> str:
    return f"{made.lines:,} lines, {made.bad:,} of them bad"


def _stream(out: Path) -> str:
    summary = gp.run(windows.build(out))
    if summary.status != "succeeded":
        raise SystemExit(f"gearpy: {summary}")
    rows = {name: _rows_of(out / "logs" / name) for name in windows.LOGS}
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    return f"{counts}; {_lines_of(out / 'quarantine'):,} lines in quarantine"


def _spark(runner: str, out: Path) -> str:
    """Run Spark in a process of its own; its output is long, and goes into a file."""
    command = _submit(out) if runner == "submit" else _pipelines(out)
    env = _environment() | {"SPARK_CONF_DIR": str(_defaults(out))}
    log = out / "spark.log"
    with log.open("w", encoding="utf-8") as opened:
        done = subprocess.run(command, env=env, cwd=out, stdout=opened, stderr=opened, check=False)
    if done.returncode:
        said = log.read_text(encoding="utf-8").splitlines()
        telling = [line for line in said if "check failed" in line or "Error" in line] or said
        raise SystemExit("\n".join(["spark failed:", *telling[:SHOWN], f"all of it: {log}"]))
    return f"{Path(command[0]).name}: {', '.join(sorted(p.name for p in _tables(out)))}"


def _batch(out: Path) -> batch.Answers:
    return batch.answers(out)


def _submit(out: Path) -> list[str]:
    program = str(_spark_home() / "bin" / "spark-submit")
    return [program, "--master", "local[2]", str(HERE / "pipeline.py"), str(out)]


def _pipelines(out: Path) -> list[str]:
    program = str(_spark_home() / "bin" / "spark-pipelines")
    return [program, "run", "--spec", str(deploy(out))]


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None, "java_home() needs it, too"
    return Path(str(spec.origin)).parent


def _check_packages() -> None:
    missing = [name for name in ("grpc", "yaml", "zstandard") if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise SystemExit(f"there is no {names} here: pip install 'pyspark[pipelines]'")


def _defaults(out: Path) -> Path:
    """Write settings for a Spark that only this machine can reach; return their folder.

    They are no arguments, as those do not reach the Spark that ``spark-pipelines`` starts.
    """
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": out / "tables",
    }
    folder = out / "conf"
    folder.mkdir()
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    return folder


def _environment() -> dict[str, str]:
    """Return the environment for Spark: its Java, this Python, and where modules are."""
    paths = [str(HERE), str(Path(gp.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "JAVA_HOME": str(gearpy.spark.java_home()),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


# -- what is printed -----------------------------------------------------------------------------


def _step(name: str, act: Callable[[], T], tell: Callable[[T], str] = str) -> T:
    """Do a step, and print what it came to and how long it took."""
    began = perf_counter()
    result = act()
    print(f"{name:10}{perf_counter() - began:6.1f} s   {tell(result)}", flush=True)
    return result


def _report(checks: Iterable[Check]) -> int:
    print(f"\n{'':16}{'rows':>10}")
    wrong = 0
    for check in checks:
        wrong += check.differences
        verdict = f"{check.differences:,} differ" if check.differences else "agrees"
        print(f"{check.name:16}{check.rows:>10,}   {verdict}")
    print("\nall answers agree" if not wrong else f"\n{wrong:,} differences")
    return int(wrong > 0)


def _rows_of(log: Path) -> int:
    view = WindowLog(log).view()
    return view.rows_between({}, view.ends())


def _lines_of(folder: Path) -> int:
    return sum(len(file.read_text("utf-8").splitlines()) for file in folder.glob("*.jsonl"))


def _tables(out: Path) -> list[Path]:
    return [path for path in (out / "tables").iterdir() if path.is_dir()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py", description="Make clicks, stream them, hand over to Spark, compare."
    )
    parser.add_argument("--events", type=int, default=200_000, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=7, help="others have other clicks")
    parser.add_argument("--out", type=Path, default=Path("clicks"), metavar="FOLDER")
    parser.add_argument(
        "--with",
        dest="runner",
        choices=("submit", "pipelines"),
        default="submit",
        help="how Spark is run",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
