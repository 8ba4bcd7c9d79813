"""The decorator `dataclass` of gearpy's own classes: what it makes works as what Python makes."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Final

import pytest

from gearpy.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A point."""

    KIND: ClassVar[str] = "point"
    x: int
    y: int = 7
    tags: list[str] = field(default_factory=list, hash=False)
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two things in their order."""

    left: Any
    right: Any = None


#: Each is done with a new class of each kind, since the first call is another than the second.
DEEDS: Final[dict[str, Callable[[Any], object]]] = {
    "make": lambda cls: [getattr(cls(x=1), name) for name in ("x", "y", "tags", "note", "KIND")],
    "make without": lambda cls: cls(),
    "make with more": lambda cls: cls(x=1, z=2),
    "make by place": lambda cls: cls(1),
    "repr": lambda cls: repr(cls(x=1, note="hidden")),
    "equal": lambda cls: [cls(x=1) == cls(x=1, note="n"), cls(x=1) == cls(x=2), cls(x=1) == 1],
    "hash": lambda cls: [hash(cls(x=1, tags=["a"])) == hash(cls(x=1)), hash(cls(x=1))],
    "hash of a list": lambda cls: hash(cls(x=[])),
    "copy": lambda cls: [copy.copy(cls(x=1)) == cls(x=1), copy.deepcopy(cls(x=[1])).x],
    "replace": lambda cls: repr(dataclasses.replace(cls(x=1), y=2)),
    "asdict": lambda cls: dataclasses.asdict(cls(x=1)),
    "set": lambda cls: setattr(cls(x=1), "x", 2),
    "delete": lambda cls: delattr(cls(x=1), "x"),
    "slots": lambda cls: [cls.__slots__, hasattr(cls(x=1), "__dict__")],
    "match": lambda cls: cls.__match_args__,
    "parameters": lambda cls: repr(cls.__dataclass_params__),
    "fields": lambda cls: repr(dataclasses.fields(cls)),
    "signature": lambda cls: str(inspect.signature(cls)),
    "inherit": lambda cls: repr(_inherited(cls, frozen=True)(x=3)),
    "inherit to change": lambda cls: _inherited(cls, frozen=False),
    "plain subclass": lambda cls: [repr(type("Sub", (cls,), {})(x=3))],
    "make without a call": lambda cls: _without_a_call(cls),  # noqa: PLW0108 - it comes below
}


def _inherited(cls: Any, *, frozen: bool) -> Any:
    return dataclasses.dataclass(frozen=frozen)(type("Sub", (cls,), {}))


def _without_a_call(cls: Any) -> str:
    made = object.__new__(cls)
    for name, value in (("x", 1), ("y", 2), ("tags", []), ("note", "n")):
        object.__setattr__(made, name, value)
    return repr(made)


def _again(decorator: Any) -> Any:
    """Make the class above once more."""
    annotations = {each.name: each.type for each in dataclasses.fields(Late)}
    body: dict[str, Any] = {
        "__doc__": Late.__doc__,
        "__module__": __name__,
        "__qualname__": "Point",
        "__annotations__": {"KIND": ClassVar[str], **annotations},
        "KIND": "point",
        "y": 7,
        "tags": field(default_factory=list, hash=False),
        "note": field(default="", compare=False, repr=False),
    }
    return decorator(frozen=True, slots=True, kw_only=True)(type("Point", (), body))


def _outcome(deed: Callable[[Any], object], cls: Any) -> object:
    try:
        return deed(cls)
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", DEEDS)
def test_a_class_does_what_python_s_does(name: str) -> None:
    """The first time and the second time."""
    late, soon = _again(dataclass), _again(dataclasses.dataclass)

    for _ in range(2):
        assert _outcome(DEEDS[name], late) == _outcome(DEEDS[name], soon)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_and_back(protocol: int) -> None:
    """As frozen dataclasses with slots do."""
    late = Late(x=1, tags=["a"])

    assert pickle.loads(pickle.dumps(late, protocol)) == late  # noqa: S301 - our own


def test_fields_have_places_if_they_shall() -> None:
    """As without `kw_only`."""
    match Pair(1, 2):
        case Pair(left, right):
            assert (left, right) == (1, 2)
    assert Pair(1) == Pair(1, None) != Pair(1, 2)


def test_a_method_that_was_kept_works_on() -> None:
    """Whoever took it before the first call has one that looks for the real one."""
    cls = _again(dataclass)
    kept = cls.__repr__
    one = cls(x=1)

    assert kept(one) == kept(one) == repr(one)
    assert cls.__repr__ is not kept


def test_first_calls_of_many_threads_work() -> None:
    """All of them get what they made."""
    for _ in range(20):
        cls, made, together = _again(dataclass), list[int](), threading.Barrier(4)

        def make(x: int, cls: Any = cls, made: list[int] = made, start: Any = together) -> None:
            start.wait()
            made.append(cls(x=x).x)

        threads = [threading.Thread(target=make, args=(x,)) for x in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == [0, 1, 2, 3]


def test_what_is_special_is_made_by_python_at_once() -> None:
    """Methods of its own, a base, something done after making, no slots, not frozen."""

    @dataclass(frozen=True, slots=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, slots=True)
    class Checked:
        x: int

        def __post_init__(self) -> None:
            assert self.x

    @dataclass(slots=True)
    class Open:
        x: int

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        x: int

    changed = Open(1)
    changed.x = 2
    assert repr(Own(1)) == "own"
    assert changed == Open(2)
    assert Ordered(1) < Ordered(2)
    with pytest.raises(AssertionError):
        Checked(0)


def test_a_change_of_what_is_no_field_is_refused() -> None:
    """Python 3.11 says something else of it, since it forgets that slots make a new class."""
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'z'"):
        Late(x=1).z = 2  # type: ignore[attr-defined]


def test_messages_are_made_late() -> None:
    """Else each process would take twice as long to load: that is what the decorator is for."""
    program = (
        "from gearpy.wire.codec import CONTROL_CLASSES\n"
        "of = [cls.__init__.__code__.co_filename for cls in CONTROL_CLASSES.values()]\n"
        "print(sum(each.endswith('late_dataclass.py') for each in of) / len(of))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert float(done.stdout) > 0.9
