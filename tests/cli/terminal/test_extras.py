"""Extras that a clone adds to its environment when a command needs them."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gearpy.cli.terminal import extras
from gearpy.cli.terminal.extras import setting_up
from gearpy.distribution import not_installed
from gearpy.errors import NotInstalled

BY_SCRIPT = ["python", "-P", "-m", "gearpy", "verify", "x.py"]


class Again(Exception):
    """The command is started again, with these words."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Stand for a command that a script of a clone has started; return what is run for it."""
    found = list[list[str]]()

    def run(command: list[str], *, check: bool) -> Any:
        found.append(command)
        return SimpleNamespace(returncode=int("delta" in command))

    def execv(program: str, words: list[str]) -> None:
        raise Again(program, words)

    monkeypatch.setattr(sys, "orig_argv", BY_SCRIPT)
    monkeypatch.setattr(extras, "own_environment", lambda: tmp_path / ".venv")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.delenv("BIN_GEAR_ADDED", raising=False)
    return found


def need(module: str) -> None:
    with setting_up():
        raise not_installed("this", module)


def test_what_is_missing_is_added_and_the_command_begins_again(
    asked: list[list[str]], tmp_path: Path
) -> None:
    with pytest.raises(Again) as again:
        need("confluent_kafka")

    assert again.value.args == (sys.executable, [sys.executable, *BY_SCRIPT[1:]])
    assert [each[-2:] for each in asked] == [[str(tmp_path / "bin" / "_bootstrap"), "kafka"]]


def test_once_only(asked: list[list[str]]) -> None:
    """It would begin for ever, if the extra did not bring the package."""
    with pytest.raises(Again):
        need("confluent_kafka")
    with pytest.raises(NotInstalled):
        need("fastavro")
    assert len(asked) == 1


@pytest.mark.parametrize("module", ["deltalake", "pandas"])
def test_what_cannot_be_added_is_told(asked: list[list[str]], module: str) -> None:
    """The machine may have no network; and not every package is one of ours."""
    with pytest.raises(NotInstalled):
        need(module)


@pytest.mark.parametrize(
    ("words", "made"), [(["gear", "verify"], Path("/c/.venv")), (BY_SCRIPT, None)]
)
def test_only_scripts_of_a_clone_add_extras(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch, words: list[str], made: Path | None
) -> None:
    monkeypatch.setattr(sys, "orig_argv", words)
    monkeypatch.setattr(extras, "own_environment", lambda: made)

    with pytest.raises(NotInstalled):
        need("confluent_kafka")
    assert asked == []
