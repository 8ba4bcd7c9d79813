"""Settings for all tests."""

import atexit
import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

# Ships no type information.
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from gearpy.cluster.host import tuning
from tests.groups import group, place

pytest_plugins = ["tests.cpu_times", "tests.forks", "tests.processes", "tests.servers.fixtures"]

# What is imported and parsed stays: to look for garbage in it at each 700 new objects, as Python
# does, takes a tenth of the time of collecting all tests.
gc.set_threshold(50_000)

# Hundreds of processes are started: where nothing keeps what is compiled, each compiles gearpy.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Reproducible by default, so that a red run stays red; `HYPOTHESIS_PROFILE=explore` looks further.
# How long anything takes says most of what else the machine does.
_ANY_TIME: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _ANY_TIME, derandomize=True, max_examples=20)
settings.register_profile("explore", _ANY_TIME, max_examples=2000)
settings.register_profile("quick", _ANY_TIME, derandomize=True, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_HERE = Path(__file__).parent
#: Where tests need no process, socket or JVM: `--quick` runs all of them that are not slow.
_PURE = frozenset(
    {"config", "core", "dsl", "messages", "state", "task", "testing", "transcripts", "wire"}
)

#: Of no test's program: to look at all of them after each test would take a tenth of a run.
_KNOWN_MODULES: Final = set[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="only what needs no process, and what is marked `smoke`; nothing marked `slow`",
    )
    parser.addoption(
        "--rewrite", action="store_true", help="write transcripts with what comes out now"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take fewer examples if it shall be quick, where a test does not say how many."""
    if config.getoption("--quick") and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what has no test for `--quick`: to do so takes longer than many tests."""
    is_left_out = (
        config.getoption("--quick")
        and collection_path.name.startswith("test_")
        and collection_path.suffix == ".py"
        and not _is_pure(collection_path)
        and "mark.smoke" not in collection_path.read_text(encoding="utf-8")
    )
    return True if is_left_out else None  # Other plugins may have a word.


def _is_pure(path: Path) -> bool:
    folder = path.relative_to(_HERE).parts[0]
    return folder in _PURE or folder.endswith(".py")


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("smoke") is not None or (
        _is_pure(item.path) and item.get_closest_marker("slow") is None
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not quick if only that is wanted; put first what takes longest."""
    if config.getoption("--quick"):
        left_out = [item for item in items if not _is_quick(item)]
        items[:] = [item for item in items if _is_quick(item)]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: place(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no garbage collection go through all modules and tests: some tests ask for many.

    Those that pytest does in the end neither; after them Python takes all apart, as ever.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Close what killed tasks left open where its test ignores that: later it fails another."""
    ignored = (str(mark.args) for mark in item.iter_markers("filterwarnings"))
    if any("Unraisable" in each for each in ignored):
        gc.collect()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group  # noqa: SLF001 - its own groups are the marks of an older pytest.
    return scheduler


_RUNTIME: Final = f"{tempfile.gettempdir()}/gearpy-tests-{os.getpid()}"


atexit.register(shutil.rmtree, _RUNTIME, ignore_errors=True)


@pytest.fixture(autouse=True, scope="session")
def _no_full_collections() -> Iterator[None]:
    """Let clusters in this process leave the heap alone; those in processes do as ever.

    A full collection of all that pytest holds takes nearly half a second. Each `gp.run` would do
    two, and then have each that a test asks for look at all of it again. Even to count what is
    frozen goes through all of it, a tenth of a second.
    """
    thresholds = SimpleNamespace(
        get_threshold=gc.get_threshold,
        set_threshold=gc.set_threshold,
        get_freeze_count=lambda: 0,
        **dict.fromkeys(("collect", "freeze", "unfreeze"), lambda: None),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "gc", thresholds)
        yield


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Put back what a command that ran in this process has set, and forget its program.

    That is whether anybody logs, and what. Commands find no runs of other tests, nor of the user.
    """
    os.environ["XDG_RUNTIME_DIR"] = f"{_RUNTIME}/{os.getpid()}"
    logger = logging.getLogger("gearpy")
    level, handlers, disabled = logger.level, list(logger.handlers), logging.root.manager.disable
    yield
    logger.setLevel(level)
    logger.handlers = handlers
    logging.disable(disabled)
    # A cluster that other tests use, too, may forget a program of its own meanwhile.
    for name in sys.modules.keys() - _KNOWN_MODULES:
        # Programs have names of their own, or stood in a test's own folder.
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if name.startswith("gearpy_app") or "/pytest-of-" in file:
            sys.modules.pop(name, None)
        else:
            _KNOWN_MODULES.add(name)
