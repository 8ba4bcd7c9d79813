"""What is installed, and under which name; see `gearpy.distribution`."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import HeaderParser
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from packaging.requirements import Requirement

import gearpy as gp
from gearpy import distribution
from gearpy.cluster.programs.requirements import missing
from gearpy.cluster.states.query import query
from gearpy.distribution import other_project, pip_install, program
from gearpy.errors import NotInstalled
from gearpy.storage.folder.at import file_system_at

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "gearpy" / "services" / "page"

#: Checkers and test tools: not in the library.
DEVELOPERS: Final = frozenset({"all", "dev", "docs", "release"})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build wheel and sdist; return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (each for each in wheel.namelist() if each.endswith("/METADATA"))
    return HeaderParser().parsestr(wheel.read(name).decode())


def test_the_distribution_has_a_name_of_its_own(metadata: Message) -> None:
    assert metadata["Name"] == distribution.DISTRIBUTION == "gearpy-streaming"
    assert metadata["Version"] == gp.__version__


def test_people_and_indexes_can_read_about_it(metadata: Message) -> None:
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Author"] == "gearpy developers"


def test_the_wheel_has_all_modules_and_the_reference_of_keys(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gearpy").rglob("*.py")}
    page = {path.relative_to(ROOT).as_posix() for path in PAGE.rglob("*") if path.is_file()}
    (reference,) = (name for name in names if name.endswith("/data/share/gearpy/gear.toml"))

    assert sources - names == {"gearpy/spark/entry/pyspark_gearpy.py"}, "it is at the top"
    assert page
    assert page <= names, "what the browser loads, and the licences of libraries"
    assert "pyspark_gearpy.py" in names, "Spark finds the format by this name"
    assert wheel.read(reference) == (ROOT / "conf" / "gear.toml").read_bytes()
    assert not any(name.startswith(("tests/", "docs/")) for name in names)


def test_the_sdist_has_documentation_and_examples(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"README.md", "LICENSE", "docs/tutorial.md", "conf/gear.toml", "bin/gear"} <= names
    assert {"examples/wordcount.py", "gearpy/__init__.py", "tests/test_distribution.py"} <= names


#: fsspec imports these by the scheme of a URL, and what it needs for that.
#: Packages without code: `zoneinfo` finds its zones there.
DATA = {"tzdata"}
OF_FSSPEC: Final = {"adlfs", "gcsfs", "requests", "s3fs"}


def test_extras_have_only_what_code_uses(metadata: Message) -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "gearpy").rglob("*.py"))
    extras = metadata.get_all("Provides-Extra") or []
    for text in metadata.get_all("Requires-Dist") or []:
        need = Requirement(text)
        extra = re.search(r"extra == .([\w-]+)", text)
        if need.name == distribution.DISTRIBUTION or (extra and extra[1] in DEVELOPERS):
            continue
        if need.name in OF_FSSPEC or need.name in DATA:
            continue
        module = need.name.replace("-", "_")
        assert re.search(rf"(import|from|find_spec\(.) ?{module}\b|\"{module}\"", code), text
    assert "web" not in extras


def test_all_texts_that_say_how_to_install_have_the_right_name() -> None:
    """The other project would be installed, in silence."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    sources = [path for folder in ("gearpy", "examples") for path in (ROOT / folder).rglob("*.py")]
    wrong = re.compile(r"pip install[^`\n]*['\" ]gearpy(?![-_\w])")

    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in [*pages, *sources]
        if path.name != "0004-dependencies.md"
        for line in path.read_text(encoding="utf-8").splitlines()
        if wrong.search(line)
    ]
    assert not found, "\n".join(found)


def test_what_to_type_fits_a_clone_and_an_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert program("local") == "bin/local"
    assert pip_install("spark").endswith(f"install -e '{ROOT}[spark]'")

    monkeypatch.setattr(distribution, "_FOLDER", tmp_path / "site-packages" / "gearpy")
    assert program("local") == "gear local"
    assert pip_install("spark") == "pip install 'gearpy-streaming[spark]'"


def a_distribution(folder: Path, *, entry_point: str) -> None:
    info = folder / "gearpy-1.3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gearpy\nVersion: 1.3.1\n")
    (info / "entry_points.txt").write_text(entry_point)


def test_the_other_project_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert other_project() == ""
    a_distribution(tmp_path, entry_point="")
    monkeypatch.syspath_prepend(tmp_path)

    assert "gearpy 1.3.1 is installed beside gearpy-streaming" in other_project()
    done = subprocess.run(
        [sys.executable, "-m", "gearpy", "--version"],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"gearpy {gp.__version__}\n"
    assert "pip uninstall gearpy gearpy-streaming" in done.stderr


def test_an_older_name_of_this_project_is_left_in_peace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_distribution(tmp_path, entry_point="[console_scripts]\ngear = gearpy.cli.main:main\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert other_project() == ""


@pytest.mark.parametrize("name", ["gearpy", "gearpy>=1"])
def test_a_program_that_requires_the_other_project_is_told(name: Any) -> None:
    assert missing(name) == "gearpy is another project: this one is called gearpy-streaming"
    assert missing(distribution.DISTRIBUTION) == ""


#: What a program may ask for, the package that it then needs, and the extra that brings it.
NEEDS: Final[dict[str, tuple[Callable[[], object], str, str]]] = {
    "kafka": (lambda: gp.kafka("t", servers="localhost:9"), "confluent_kafka", "kafka"),
    "kafka_sink": (lambda: gp.kafka_sink("t", servers="localhost:9"), "confluent_kafka", "kafka"),
    "avro": (lambda: gp.avro(schema={}), "fastavro", "kafka"),
    "protobuf": (lambda: gp.protobuf(object), "google.protobuf", "kafka"),
    "delta": (lambda: gp.delta_table("t"), "deltalake", "delta"),
    "iceberg": (lambda: gp.iceberg_table("a.b", catalog="c"), "pyiceberg", "iceberg"),
    "postgres": (lambda: gp.postgres("postgresql://h/d", "t", by="id"), "psycopg", "postgres"),
    "sql_source": (lambda: gp.sql_source("sqlite:///x.db", "t"), "sqlalchemy", "sql"),
    "postgres_sink": (lambda: gp.postgres_sink("postgresql://h/d", "t"), "psycopg", "postgres"),
    "sql_sink": (lambda: gp.sql_sink("sqlite:///x.db", "t"), "sqlalchemy", "sql"),
    "mysql": (lambda: gp.sql_sink("mysql://h/d", "t"), "pymysql", "mysql"),
    "s3": (lambda: file_system_at("s3://b/x"), "s3fs", "s3"),
    "gs": (lambda: file_system_at("gs://b/x"), "gcsfs", "gcs"),
    "abfs": (lambda: file_system_at("abfs://b/x"), "adlfs", "azure"),
    "webhdfs": (lambda: file_system_at("webhdfs://h/x"), "requests", "hdfs"),
    "store on kafka": (lambda: file_system_at("kafka://h/x"), "confluent_kafka", "kafka"),
    "sql": (lambda: query({"t": pa.table({"n": [1]})}, "select 1"), "duckdb", "sql"),
    "pandas": (
        lambda: gp.StreamApp("a").read(gp.collection([1])).map_batches(len, form="pandas"),
        "pandas",
        "",
    ),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_missing_package_is_one_line_with_the_command_that_brings_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs, package, extra = NEEDS[name]
    for module in ("webhdfs", "kafka", "topics"):  # They import it at their top.
        monkeypatch.delitem(sys.modules, f"gearpy.storage.folder.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    # Another test of this process may have opened such a store.
    known = import_module("fsspec.registry")._registry  # noqa: SLF001 -- it has no way to forget
    monkeypatch.delitem(known, name, raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)

    with pytest.raises(NotInstalled) as caught:
        needs()

    command = pip_install(extra) if extra else f"install {package}"
    assert f"needs {package}, not installed here: " in str(caught.value)
    assert str(caught.value).endswith(command)
    assert "\n" not in str(caught.value)
    assert caught.value.extra == extra


def test_every_package_of_an_extra_is_known() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = declared["project"]["optional-dependencies"]
    assert set(distribution.EXTRAS.values()) <= set(extras)
    assert set(extras) - {*distribution.EXTRAS.values(), *DEVELOPERS} == {"spark-pipelines"}


def test_who_runs_a_program_by_python_sees_one_line_of_a_missing_package(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from gearpy.distribution import require\n"
        "from gearpy.errors import OperatorError\n"
        "try:\n"
        "    require('this', 'no_such_module')\n"
        "except Exception as error:\n"
        "    if sys.argv[1] == 'task':\n"
        "        raise OperatorError(operator='map', cause=f'NotInstalled: {error}') from None\n"
        "    raise KeyError('other') from None if sys.argv[1] == 'other' else error\n"
    )

    said = {
        kind: subprocess.run(
            [sys.executable, str(program), kind], capture_output=True, text=True, check=False
        ).stderr
        for kind in ("task", "other")
    }

    assert said["task"].startswith("error: this needs no_such_module, not installed here: ")
    assert said["task"].count("\n") == 1
    assert said["other"].startswith("Traceback")
    assert "KeyError: 'other'" in said["other"]
