"""Warnings of sources, in a program that sets up no log and in one that does."""

import logging

import pytest

from gearpy.cluster.embedded.source_warnings import show_source_warnings


def without_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the handlers of the test run, which a fixture is too early for."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("gearpy"), "handlers", [logging.NullHandler()])
    monkeypatch.setattr(logging.getLogger("gearpy.connectors"), "handlers", [])
    show_source_warnings()


def warn() -> None:
    logging.getLogger("gearpy.connectors.files").warning("%s, left out", "line 7")


def test_warnings_of_sources_show_without_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, however many runs there were; what is no warning does not show."""
    without_log(monkeypatch)
    show_source_warnings()
    warn()
    logging.getLogger("gearpy.connectors.files").info("read")

    assert capsys.readouterr().err == "warning: line 7, left out\n"


@pytest.mark.parametrize("name", ["", "gearpy"])
def test_a_log_that_is_set_up_has_them_alone(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_log(monkeypatch)
    monkeypatch.setattr(logging.getLogger(name), "handlers", [logging.StreamHandler()])
    warn()

    assert capsys.readouterr().err == "line 7, left out\n"
