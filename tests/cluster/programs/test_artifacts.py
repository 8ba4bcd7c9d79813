"""From an artifact to its application, and how programs in one process do not meet."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.cluster.programs.artifacts import (
    ApplicationLoader,
    embed,
    embedded_here,
    forget,
    load,
    spread,
    stream_of,
)
from gearpy.cluster.programs.isolation import GuestModules, Modules, OwnModules
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import AppId, ExecutorId
from gearpy.messages.client import Artifact
from tests.cluster.build import app_modules
from tests.folders import write

ONE, TWO, ME = AppId(1), AppId(2), ExecutorId(0)
APP: Final = """\
import gearpy as gp
import helper_of_app

app = gp.StreamApp(helper_of_app.NAME)
app.read(gp.collection([1])).write(gp.to_list([]))
"""


@pytest.fixture(autouse=True)
def _same_process_after() -> Iterator[None]:
    modules, path, finders = set(sys.modules), list(sys.path), list(sys.meta_path)
    yield
    for name in set(sys.modules) - modules:
        if not name.startswith("gearpy."):
            sys.modules.pop(name, None)
    sys.path[:], sys.meta_path[:] = path, finders


def stored(filename: str = "app.py", **fields: Any) -> Artifact:
    return Artifact(kind="stored", location="0" * 64, filename=filename, **fields)


def program(folder: Path, name: str) -> Path:
    return write(folder, {"app.py": APP, "helper_of_app.py": f"NAME = {name!r}\n"})


def modules_of(folder: Path) -> set[str]:
    own = {name for name, module in sys.modules.items() if str(folder) in repr(module)}
    return own | app_modules()


# -- loading ---------------------------------------------------------------------------------


def test_two_programs_do_not_see_each_other(tmp_path: Path) -> None:
    loader, before = ApplicationLoader(), set(sys.modules)

    one = loader.load(ONE, stored(), ME, program(tmp_path / "one", "one"))
    two = loader.load(TWO, stored(), ME, program(tmp_path / "two", "two"))

    assert (one.name, two.name) == ("one", "two")
    assert "app" not in set(sys.modules) - before
    assert "helper_of_app" not in sys.modules
    loader.release(ONE, ME)
    loader.release(TWO, ME)
    assert app_modules() == set()


def test_programs_can_be_loaded_at_the_same_time(tmp_path: Path) -> None:
    loader, names = ApplicationLoader(), list[str]()
    folders = [program(tmp_path / str(number), f"app{number}") for number in range(8)]

    def role(number: int) -> None:
        names.append(loader.load(AppId(number), stored(), ME, folders[number]).name)

    roles = [threading.Thread(target=role, args=(number,)) for number in range(8)]
    for each in roles:
        each.start()
    for each in roles:
        each.join()
    for number in range(8):
        loader.release(AppId(number), ME)

    assert sorted(names) == [f"app{number}" for number in range(8)]
    assert app_modules() == set()


def test_the_same_program_twice_is_two_programs(tmp_path: Path) -> None:
    loader, folder = ApplicationLoader(), program(tmp_path, "same")

    one = loader.load(ONE, stored("app.zip", module="app"), ME, folder)
    two = loader.load(TWO, stored("app.zip", module="app"), ME, folder)

    assert one is not two
    assert len({name.partition(".")[0] for name in app_modules()}) == 2
    loader.release(ONE, ME)
    loader.release(TWO, ME)


def test_both_ways_build_the_same_graph(tmp_path: Path) -> None:
    """An executor may be a thread beside others, or a process: its proof is the same."""
    text = (
        "import gearpy as gp\n"
        "class Mine(gp.Task):\n    pass\n"
        "app = gp.StreamApplication('app', gp.Graph().add(gp.Processor(Mine)))\n"
    )
    folder = write(tmp_path, {"app.py": text, "shop/__init__.py": "", "shop/app.py": text})
    for artifact in (stored(), stored("shop.zip", module="shop.app")):
        dags = []
        for own_process in (True, False):
            loader = ApplicationLoader(own_process=own_process)
            dags.append(stream_of(loader.load(ONE, artifact, ME, folder), "this").dag)
            loader.release(ONE, ME)
        assert dags[0].description == dags[1].description
        assert dags[0].structural_hash() == dags[1].structural_hash()


def test_an_attribute_and_arguments_are_those_submitted(tmp_path: Path) -> None:
    text = (
        "import gearpy as gp\n"
        "def make(args):\n"
        "    app = gp.StreamApp(args[0])\n"
        "    app.read(gp.collection([1])).write(gp.to_list([]))\n"
        "    return app\n"
    )
    folder = write(tmp_path, {"my-jobs.v2.py": text})

    assert load(stored("my-jobs.v2.py", attr="make", args=("x",)), folder).name == "x"


def test_a_file_named_like_a_module_of_python_harms_nothing(tmp_path: Path) -> None:
    text = "import gearpy as gp\napp = gp.StreamApp('q')\napp.read(gp.collection([1]))\n"
    queue = sys.modules["queue"]

    assert load(stored("queue.py"), write(tmp_path, {"queue.py": text})).name == "q"
    assert sys.modules["queue"] is queue


@pytest.mark.parametrize(
    ("artifact", "files", "message"),
    [
        (stored(), {"app.py": "x = 1\n"}, "no application in app.py: define"),
        (
            stored("shop.zip", module="shop.app"),
            {"shop/__init__.py": "", "shop/app.py": "x = 1\n"},
            "no application in shop.zip:shop.app",
        ),
        (stored("a.zip", module="shop.jobs"), {"shop/__init__.py": ""}, "has no module shop.jobs"),
        (stored("a.zip", module="nowhere"), {"app.py": ""}, "has no module nowhere"),
        (stored(attr="three"), {"app.py": "x = 1\n"}, "app.py has no 'three'"),
    ],
)
def test_what_is_not_there_is_named(
    tmp_path: Path, artifact: Artifact, files: dict[str, str], message: str
) -> None:
    path = list(sys.path)

    for loader in (ApplicationLoader(), ApplicationLoader(own_process=True)):
        with pytest.raises(ConfigError, match=message):
            loader.load(ONE, artifact, ME, write(tmp_path, files))

    assert (modules_of(tmp_path), sys.path) == (set(), path)


@pytest.mark.parametrize("run", ["gp.run(app)", "gp.run(lambda: app)", "main()", "gp.start(app)"])
@pytest.mark.parametrize("own_process", [True, False])
def test_a_program_that_runs_itself_is_loaded_and_does_not_run(
    tmp_path: Path, run: str, *, own_process: bool
) -> None:
    text = f"""\
import gearpy as gp

app, results = gp.StreamApp("of-itself"), []
app.read(gp.collection([1])).write(gp.to_list(results))

def main():
    gp.run(app)

{run}
raise ValueError("nothing behind it is executed")
"""
    loader = ApplicationLoader(own_process=own_process)
    folder = write(tmp_path, {"app.py": text})
    application = stream_of(loader.load(ONE, stored(), ME, folder), "a test")
    assert application.name == "of-itself"


def test_an_artifact_that_was_not_fetched_is_refused() -> None:
    with pytest.raises(ConfigError, match="was not fetched"):
        load(stored())


def test_a_program_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    folder = write(tmp_path, {"app.py": "import bad_helper\n", "bad_helper.py": "1 / 0\n"})

    with pytest.raises(OperatorError) as caught:
        ApplicationLoader().load(ONE, stored(), ME, folder)

    assert caught.value.operator == "import app.py"
    assert caught.value.source == f"{folder / 'bad_helper.py'}:1"
    assert app_modules() == set()


# -- modules ---------------------------------------------------------------------------------

KINDS: Final = (OwnModules, GuestModules)


@pytest.mark.parametrize("modules_in", KINDS)
def test_every_way_to_import_works(tmp_path: Path, modules_in: Callable[[Path], Modules]) -> None:
    files = {
        "shop_a/__init__.py": "from shop_a import one\nfrom . import two\n",
        "shop_a/one.py": "NAME = __name__\nVALUE = 1\n",
        "shop_a/two.py": "from .one import VALUE\n",
        "shop_a/deep/__init__.py": "",
        "shop_a/deep/three.py": "from ..one import VALUE\nVALUE += 2\n",
        "plain_a/four.py": "VALUE = 4\n",
        "star_a.py": "__all__ = ['FIVE']\nFIVE = 5\n",
        "main_a.py": (
            "import json, os.path\n"
            "import shop_a.deep.three\n"
            "import shop_a.one as one\n"
            "import plain_a.four\n"
            "from shop_a.deep import three\n"
            "from star_a import *\n"
            "def later():\n"
            "    import shop_a.two\n"
            "    from late_a import SIX\n"
            "    return shop_a.two.VALUE, SIX\n"
            "found = (shop_a.deep.three.VALUE, one.VALUE, plain_a.four.VALUE, three.VALUE, FIVE)\n"
            "same = shop_a.deep.three is three\n"
        ),
        "late_a.py": "SIX = 6\n",
    }
    modules = modules_in(write(tmp_path, files))

    main = modules.run_module("main_a")

    assert main.found == (3, 1, 4, 3, 5)
    assert main.same
    assert main.later() == (1, 6)
    assert main.json is sys.modules["json"]
    modules.close()


@pytest.mark.parametrize("modules_in", KINDS)
def test_dataclasses_and_type_hints_find_their_module(
    tmp_path: Path, modules_in: Callable[[Path], Modules]
) -> None:
    text = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar, get_type_hints\n"
        "from types_b import Amount\n"
        "@dataclass\n"
        "class Order:\n"
        "    many: ClassVar[int] = 3\n"
        "    amount: Amount = 1\n"
        "hints = get_type_hints(Order)\n"
    )
    modules = modules_in(write(tmp_path, {"main_b.py": text, "types_b.py": "Amount = int\n"}))

    main = modules.run_file(tmp_path / "main_b.py")

    assert main.hints["amount"] is int
    assert main.Order().amount == 1
    modules.close()


def test_own_modules_cannot_take_the_name_of_a_loaded_one(tmp_path: Path) -> None:
    """Half of the process would use the one, half the other."""
    modules = OwnModules(write(tmp_path, {"email/__init__.py": "", "email/app.py": ""}))

    with pytest.raises(ConfigError, match="module email of the program has the name of another"):
        modules.run_module("email.app")
    modules.close()


def test_a_folder_gives_way_to_an_installed_package(tmp_path: Path) -> None:
    files = {"msgpack/data.txt": "", "main_e.py": "import msgpack\nfound = msgpack.packb(1)\n"}
    modules = GuestModules(write(tmp_path, files))

    assert modules.run_module("main_e").found == b"\x01"
    modules.close()


def test_a_module_that_is_missing_is_named_as_the_user_did(tmp_path: Path) -> None:
    files = {"main_f.py": "import shop_f.nothing\n", "shop_f/__init__.py": ""}
    modules = GuestModules(write(tmp_path, files))

    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'shop_f.nothing'$"):
        modules.run_module("main_f")
    modules.close()


def test_a_name_is_free_again_after_the_end(tmp_path: Path) -> None:
    folder = write(tmp_path, {"main_g.py": ""})
    first = GuestModules(folder)
    name = first.run_module("main_g").__name__
    first.close()
    first.close()

    second = GuestModules(folder)

    assert second.run_module("main_g").__name__ == name
    second.close()


def test_an_object_that_a_run_has_stored_is_that_of_the_process_of_now() -> None:
    """Its earlier process had it under another key; for how many processes, it still says."""
    app = gp.StreamApp("kept")
    app.read(gp.collection([1, 2], partitions=2)).key_by(abs).count(name="count").write(
        gp.jsonl_folder("out")
    )
    submitted = embed(app.build())
    try:
        stored = spread(Artifact(kind="memory", location="of an earlier process"), 3)
        found = stream_of(load(embedded_here(stored, spread(submitted, 2))), "a test")
    finally:
        forget(submitted)

    assert [found.dag.processors[pid].parallelism for pid in found.dag.order] == [2, 3]
    with pytest.raises(ConfigError, match="of an earlier process is not in this process"):
        load(stored)
    uploaded = Artifact(kind="stored", location="a" * 64)
    assert embedded_here(uploaded, submitted) == uploaded
