"""`--cpu FILE`: what each test costs, with setup and teardown, a line of JSON each.

CPU seconds of the process of the test, of children that it has waited for, and seconds that have
passed. A fixture that tests share counts to the first of them. Children that nobody waits for, such
as a JVM until it ends, are missing.
"""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", metavar="FILE", help="add what each test costs to this file")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--cpu"):
        config.pluginmanager.register(_Measuring(config.invocation_params.dir / file))


class _Measuring:
    def __init__(self, file: Path) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = _spent()
        done = yield
        spent = [round(now - then, 3) for now, then in zip(_spent(), before, strict=True)]
        with self._file.open("a", encoding="utf-8") as out:  # Processes of a run share it.
            out.write(json.dumps([*spent, item.nodeid]) + "\n")
        return done


def _spent() -> tuple[float, float, float]:
    times = os.times()
    own, children = times.user + times.system, times.children_user + times.children_system
    return own, children, time.monotonic()
