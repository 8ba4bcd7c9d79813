"""Where the program of an application object is."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from gearpy.cluster.programs.origin import target_of
from gearpy.errors import ConfigError


class _App:
    def __repr__(self) -> str:
        return "<App>"


def _module(
    monkeypatch: pytest.MonkeyPatch, name: str, file: Path | None, *, package: str = ""
) -> ModuleType:
    module = ModuleType(name)
    module.__package__ = package
    if file is not None:
        file.parent.mkdir(exist_ok=True)
        file.touch()
        module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_a_variable_of_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = _module(monkeypatch, "shop_of_a_test", tmp_path / "shop.py")
    app = _App()
    vars(module).update(_hidden=app, orders=app)

    assert target_of(app) == f"{tmp_path / 'shop.py'}:orders"


def test_a_variable_of_a_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is what is packed, so that its modules find each other."""
    top = _module(monkeypatch, "shop_of_tests", tmp_path / "shop_of_tests" / "__init__.py")
    top.__path__ = [str(tmp_path / "shop_of_tests")]
    daily = tmp_path / "shop_of_tests" / "daily.py"
    module = _module(monkeypatch, "shop_of_tests.daily", daily, package="shop_of_tests")
    app = _App()
    vars(module)["app"] = app

    assert target_of(app) == f"{tmp_path / 'shop_of_tests'}:shop_of_tests.daily:app"


def test_what_no_other_process_could_find_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"<App> cannot be submitted: .* at the top of a module"):
        target_of(_App())
    module = _module(monkeypatch, "notebook_of_a_test", None)
    app = _App()
    vars(module)["app"] = app
    with pytest.raises(ConfigError, match="app is an application of a session without a file"):
        target_of(app)
