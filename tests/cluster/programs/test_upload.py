"""From a path to an artifact that the master has, whatever happens on the way."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.programs.artifacts import ApplicationLoader
from gearpy.cluster.programs.fetch import ArtifactCache
from gearpy.cluster.programs.upload import packed, send, upload
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, ConnectionLost, SubmitRefused
from gearpy.ids import AppId, ExecutorId
from gearpy.messages.client import (
    Artifact,
    ArtifactMissing,
    ArtifactStored,
    HasArtifact,
    Refused,
    UploadArtifact,
)
from gearpy.storage.archives import ArtifactLimits
from gearpy.storage.artifacts import PART_BYTES, ArtifactDesk, ArtifactStore
from tests.folders import write

APP: Final = """\
import gearpy as gp

app = gp.StreamApp("{name}")
app.read(gp.collection([1])).write(gp.to_list([]))
"""


def config(**overrides: str) -> Config:
    keys = {f"artifact.{key.replace('_', '-')}": value for key, value in overrides.items()}
    return load(env={}, overrides=keys)


class Master:
    def __init__(self, folder: Path, bytes_max: int = 10**8) -> None:
        self.desk = ArtifactDesk(ArtifactStore(folder / "master", bytes_max))
        self.asked: list[Any] = []

    def ask(self, message: Any) -> Any:
        self.asked.append(message)
        return self.desk.answer(message)

    @property
    def kinds(self) -> list[str]:
        return [type(message).__name__ for message in self.asked]


@pytest.fixture
def master(tmp_path: Path) -> Master:
    return Master(tmp_path)


def name_on_the_cluster(artifact: Artifact, master: Master, tmp_path: Path) -> str:
    cache = ArtifactCache(tmp_path / "worker", master.ask, ArtifactLimits.of(config().artifact))
    loader = ApplicationLoader()
    try:
        folder = cache.path_of(artifact)
        return loader.load(AppId(1), artifact, ExecutorId(0), folder).name
    finally:
        loader.release(AppId(1), ExecutorId(0))


# -- what may be given -----------------------------------------------------------------------


def test_a_file_takes_along_what_it_imports(tmp_path: Path, master: Master) -> None:
    """Modules and packages beside it, and what those import; nothing else of the folder."""
    text = "import helper_u, os\ndef later():\n    from shop_u.names import x\n"
    folder = write(
        tmp_path / "project",
        {
            "jobs.py": text + APP.format(name="many"),
            "helper_u.py": "import second_u\n",
            "second_u.py": "import jobs\n",
            "shop_u/__init__.py": "from plain_u.four import x\n",
            "shop_u/names.py": "x = 1\n",
            "plain_u/four.py": "x = 4\n",
            "os.txt": "",
            "other.py": "",
            "gearpy/__init__.py": "raise AssertionError\n",
            ".secret": "",
        },
    )

    with packed(str(folder / "jobs.py"), config()) as program:
        assert (program.artifact.filename, program.artifact.module) == ("jobs.zip", "jobs")
        with zipfile.ZipFile(program.path) as archive:
            assert archive.namelist() == [
                "helper_u.py",
                "jobs.py",
                "plain_u/four.py",
                "second_u.py",
                "shop_u/__init__.py",
                "shop_u/names.py",
            ]
        send(master.ask, program)

    assert name_on_the_cluster(program.artifact, master, tmp_path) == "many"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("project/shop", "main"),
        ("project/shop:jobs.daily", "daily"),
        ("project/shop:jobs.daily:app", "daily"),
        ("project/shop:jobs.daily.app", "daily"),
        ("project/plain", "plain"),
        ("project/plain:other", "other"),
        ("shop.zip", "main"),
        ("shop.zip:shop.jobs.daily", "daily"),
        ("shop-1.0-py3-none-any.whl", "main"),
        ("shop-1.0-py3-none-any.whl:shop.jobs.daily:app", "daily"),
    ],
)
def test_whatever_was_given_runs_on_the_cluster(
    tmp_path: Path, master: Master, given: str, name: str
) -> None:
    shop = {
        "shop/__init__.py": "",
        "shop/app.py": "from .names import x\n" + APP.format(name="main"),
        "shop/names.py": "x = 1\n",
        "shop/jobs/__init__.py": "",
        "shop/jobs/daily.py": "from shop.names import x\n" + APP.format(name="daily"),
    }
    plain = {
        "plain/app.py": "import other\n" + APP.format(name="plain"),
        "plain/other.py": APP.format(name="other"),
    }
    write(tmp_path / "project", {**shop, **plain})
    info = {
        "shop-1.0.dist-info/top_level.txt": "shop\n",
        "shop-1.0.dist-info/METADATA": "Name: x\n",
    }
    for archive_name, files in (("shop.zip", shop), ("shop-1.0-py3-none-any.whl", shop | info)):
        with zipfile.ZipFile(tmp_path / archive_name, "w") as archive:
            for each, text in files.items():
                archive.writestr(each, text)

    artifact = upload(master.ask, str(tmp_path / given), config())

    assert name_on_the_cluster(artifact, master, tmp_path) == name


def test_a_file_of_sql_is_a_program(tmp_path: Path, master: Master) -> None:
    """It needs no Python around it."""
    (tmp_path / "data.jsonl").write_text('{"a": 1}\n')
    job = tmp_path / "job.sql"
    job.write_text(f"select a from '{tmp_path}/data.jsonl'")  # noqa: S608 - of the test

    artifact = upload(master.ask, str(job), config())

    assert name_on_the_cluster(artifact, master, tmp_path) == "job"


def test_requirements_beside_a_file_go_along(tmp_path: Path, master: Master) -> None:
    """Else nobody could check them there."""
    files = {"jobs.py": APP.format(name="needy"), "requirements.txt": "no-such-package\n"}
    target = str(write(tmp_path, files) / "jobs.py")

    checked = upload(master.ask, target, config())
    unchecked = upload(master.ask, target, config(), check_requirements=False)

    with pytest.raises(ConfigError, match="needs no-such-package"):
        name_on_the_cluster(checked, master, tmp_path)
    assert name_on_the_cluster(unchecked, master, tmp_path) == "needy"


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ({}, "nowhere.py", "no such file: "),
        ({"app.txt": ""}, "app.txt", "is not a program"),
        ({"app.zip": "no archive"}, "app.zip", "is damaged"),
        ({"app.py": ""}, "app.py:a:b", "is one module"),
        ({"x/data.csv": ""}, "x", "has 0 packages and modules"),
        ({"my-app.py": "import helper_v\n", "helper_v.py": ""}, "my-app.py", "rename it"),
        ({"app.py": "x" * 3000}, "app.py", "has 3000 bytes when packed, at most 2000 are taken"),
    ],
)
def test_mistakes_show_before_the_upload(
    tmp_path: Path, master: Master, files: dict[str, str], given: str, message: str
) -> None:
    target = str(write(tmp_path, files) / given)

    with pytest.raises(ConfigError, match=message):
        upload(master.ask, target, config(max_bytes="2000"))

    assert master.asked == []


# -- the upload ------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> str:
    path = tmp_path / "large.py"
    path.write_bytes(b"#" * (3 * PART_BYTES + 10))
    return str(path)


def test_progress_is_told_to_the_end(master: Master, large: str) -> None:
    told: list[tuple[int, int]] = []

    upload(master.ask, large, config(), on_progress=lambda done, total: told.append((done, total)))

    size = 3 * PART_BYTES + 10
    assert told == [(n, size) for n in (0, PART_BYTES, 2 * PART_BYTES, 3 * PART_BYTES, size)]


def test_an_upload_that_was_cut_goes_on(master: Master, large: str) -> None:
    def cut(message: Any) -> Any:
        if isinstance(message, UploadArtifact) and message.offset == 2 * PART_BYTES:
            raise ConnectionLost("gone")
        return master.ask(message)

    with pytest.raises(ConnectionLost):
        upload(cut, large, config())
    master.asked.clear()

    upload(master.ask, large, config())

    assert [m.offset for m in master.asked if isinstance(m, UploadArtifact)] == [
        2 * PART_BYTES,
        3 * PART_BYTES,
    ]


def test_a_last_answer_that_was_lost_is_no_harm(master: Master, large: str) -> None:
    def deaf(message: Any) -> Any:
        answer = master.ask(message)
        if isinstance(answer, ArtifactStored):
            raise ConnectionLost("gone")
        return answer

    with pytest.raises(ConnectionLost):
        upload(deaf, large, config())

    assert upload(master.ask, large, config()).filename == "large.py"


def test_a_master_that_forgets_gets_it_again(master: Master, large: str, tmp_path: Path) -> None:
    lives = [master]

    def restarted(message: Any) -> Any:
        is_second = isinstance(message, UploadArtifact) and message.offset == PART_BYTES
        if is_second and len(lives) == 1:
            lives.append(Master(tmp_path))
        return lives[-1].ask(message)

    artifact = upload(restarted, large, config())

    assert lives[-1].ask(HasArtifact(sha256=artifact.location)) == ArtifactStored(
        sha256=artifact.location, size=3 * PART_BYTES + 10
    )


def test_a_master_that_takes_nothing_is_given_up(large: str) -> None:
    with pytest.raises(ConnectionLost, match="keeps nothing of it"):
        upload(lambda message: ArtifactMissing(sha256=message.sha256), large, config())


def test_a_master_that_dies_again_and_again_is_given_up(tmp_path: Path, large: str) -> None:
    def flapping(message: Any) -> Any:
        lasts = not isinstance(message, UploadArtifact) or message.offset == 0
        return (first if lasts else Master(tmp_path)).ask(message)

    first = Master(tmp_path)
    with pytest.raises(ConnectionLost, match="keeps nothing of it"):
        upload(flapping, large, config())


@pytest.mark.parametrize("number", [1, 2])
def test_a_refusal_is_told(tmp_path: Path, large: str, number: int) -> None:
    asks: dict[int, Callable[[Any], Any]] = {
        1: Master(tmp_path, bytes_max=PART_BYTES).ask,
        2: lambda _: Refused(reason="at most nothing are taken"),
    }
    with pytest.raises(SubmitRefused, match=r"at most .* are taken"):
        upload(asks[number], large, config())
