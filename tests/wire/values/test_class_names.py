"""Classes by name, see `gearpy.wire.values.class_names`."""

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ProtocolError
from gearpy.wire.values.class_names import (
    PROGRAM,
    class_named,
    full_name,
    module_name,
    name_of_class,
    place_of_class,
)


class Outer:
    class Inner:
        """Is in another class."""

    value = 1


@pytest.fixture
def program() -> Iterator[str]:
    """Let the code of a program that shares the process run; return its package."""
    token = PROGRAM.set("gearpy_app_7")
    yield "gearpy_app_7"
    PROGRAM.reset(token)


def a_module(monkeypatch: pytest.MonkeyPatch, name: str, **names: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize("cls", [Outer, Outer.Inner, Decimal, Path, int])
def test_a_class_is_found_by_its_name(cls: type) -> None:
    assert class_named(name_of_class(cls)).cls is cls
    place = place_of_class(cls)
    assert place is not None
    assert place.cls is cls


@pytest.mark.parametrize(
    ("module", "shown"),
    [
        ("orders", "orders"),
        ("gearpy_app_12.shop.orders", "shop.orders"),
        ("gearpy_app_queue", "queue"),
        ("gearpy.core.dag.graph", "gearpy.core.dag.graph"),
    ],
)
def test_a_module_has_the_name_that_its_author_knows(module: str, shown: str) -> None:
    assert module_name(module) == shown


def test_the_main_module_has_the_name_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python flow.py`` goes on with what ``gear run flow.py`` has stored, and the reverse."""
    cls = type("Order", (), {"__module__": "__main__"})
    main = a_module(monkeypatch, "__main__", Order=cls, __file__="/home/ada/flow.py")
    vars(main)["__spec__"] = None

    assert name_of_class(cls) == "flow:Order"
    assert class_named("flow:Order").cls is cls


def test_a_notebook_is_the_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = type("Order", (), {"__module__": "__main__"})
    vars(a_module(monkeypatch, "__main__", Order=cls))["__spec__"] = None

    assert class_named(name_of_class(cls)).cls is cls


def test_a_program_from_standard_input_is_the_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = type("Order", (), {"__module__": "__main__"})
    main = a_module(monkeypatch, "__main__", Order=cls, __file__="<stdin>")
    vars(main)["__spec__"] = None

    assert name_of_class(cls) == "__main__:Order"
    assert class_named("__main__:Order").cls is cls


@pytest.mark.parametrize("stem", ["my-flow", "1st", "flow (2)", "größe+", "a.b"])
def test_a_file_may_have_any_name(monkeypatch: pytest.MonkeyPatch, stem: str) -> None:
    cls = type("Order", (), {"__module__": "__main__"})
    main = a_module(monkeypatch, "__main__", Order=cls, __file__=f"/home/ada/{stem}.py")
    vars(main)["__spec__"] = None

    assert name_of_class(cls) == f"{stem}:Order"
    assert class_named(f"{stem}:Order").cls is cls


def test_programs_of_one_process_find_their_own_classes(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    mine = type("Order", (), {})
    a_module(monkeypatch, f"{program}.orders", Order=mine)
    a_module(monkeypatch, "gearpy_app_8.orders", Order=type("Order", (), {}))
    a_module(monkeypatch, "orders", Order=type("Order", (), {}))

    assert class_named("orders:Order").cls is mine


def test_a_file_with_the_name_of_another_module_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = type("Queue", (), {})
    a_module(monkeypatch, "gearpy_app_queue", Queue=mine)

    assert class_named("queue:Queue").cls is mine


def test_a_module_that_was_not_loaded_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lazily_loaded.py").write_text("class Order: pass\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert class_named("lazily_loaded:Order").cls.__name__ == "Order"
    monkeypatch.delitem(sys.modules, "lazily_loaded")


def test_a_module_that_raises_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "raises_at_once.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ProtocolError, match="raises_at_once cannot be imported: ZeroDivision"):
        class_named("raises_at_once:Order")


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:eval",
        "os:path.join",
        "os:environ.clear",
        f"{__name__}:Outer.value",
        f"{__name__}:Outer.__class__",
        f"{__name__}:Nobody",
        "no_such_module:Order",
        "decimal",
        "decimal:",
        ":Decimal",
        "decimal:Decimal()",
        "../decimal:Decimal",
        "decimal:Decimal\n",
        "a" * 1000 + ":B",
        "",
    ],
)
def test_what_is_no_class_is_not_found(name: str) -> None:
    with pytest.raises(ProtocolError):
        class_named(name)


@given(st.text(max_size=40))
def test_no_text_raises_anything_else(name: str) -> None:
    with pytest.raises(ProtocolError):
        class_named(name)


def test_people_read_dotted_names() -> None:
    assert full_name(Decimal) == "decimal.Decimal"
    assert full_name(int) == "int"
