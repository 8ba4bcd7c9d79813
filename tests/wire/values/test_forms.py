"""Classes of each kind, taken apart and put together again, see `gearpy.wire.values.forms`."""

import ctypes
import dataclasses
import enum
import functools
import subprocess
import sys
from types import GeneratorType, ModuleType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import CannotTravel, ConfigError, ProtocolError
from gearpy.wire.values.forms import NotAllowed, SerializerForm, form_of
from gearpy.wire.values.payload import decode_batch, decode_value, encode_batch, encode_value
from gearpy.wire.values.records import NO_CLASSES, RecordRegistry, register_serializer

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1
    GREEN = "two"
    ROUGE = 1  # noqa: PIE796 - an alias


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    ALL = 3


class Bits(enum.IntFlag, boundary=enum.KEEP):
    ONE = 1


@dataclasses.dataclass
class Order:
    item: Any
    amount: int = 1
    twice: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        self.twice = self.amount * 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(Generic[T]):
    content: T


@dataclasses.dataclass
class Crate(Generic[T]):
    """Generic; typing notes on an instance what T is."""

    content: T


@dataclasses.dataclass
class Rush(Order):
    by: str = ""

    @functools.cached_property
    def label(self) -> str:
        return f"{self.item} by {self.by}"


class Point(NamedTuple):
    x: Any
    y: int = 0


@attrs.define
class Made:
    x: Any
    y: int = attrs.field(default=2, converter=int)


@attrs.frozen(slots=False, cache_hash=True)
class Cached:
    x: Any


@attrs.frozen(cache_hash=True, unsafe_hash=True)
class CachedInSlot:
    x: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    name: str
    inner: "Model | None" = None
    _seen: int = pydantic.PrivateAttr(default=0)


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Numbers(pydantic.RootModel[list[int]]):
    """A model without fields of its own."""


class Row(msgspec.Struct, frozen=True):
    x: Any
    y: int = 0


class Counted(msgspec.Struct, kw_only=True, tag=True):
    n: int

    def __post_init__(self) -> None:
        self.n += 1


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.__hidden = 1

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment] # may change


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.x == self.x

    __hash__ = None  # type: ignore[assignment] # may change


class Mixed(Slotted):
    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.z = x


class CleansUp:
    def __del__(self) -> None:
        """Do nothing yet."""


class Reduced:
    def __reduce__(self) -> str:
        return "Reduced"


class Single:
    def __new__(cls) -> Self:
        return super().__new__(cls)


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return type(other) is Money and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment] # may change


LEAVES: Any = st.one_of(
    st.none(), st.integers(), st.text(max_size=4), st.sampled_from([*Colour, *Level, *Word])
)
INSTANCES: Any = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Order, inner, st.integers()),
        st.builds(Rush, inner, st.integers(), st.text(max_size=3)),
        st.builds(Frozen, content=inner),
        st.builds(Point, inner),
        st.builds(Made, inner, st.integers()),
        st.builds(Cached, inner),
        st.builds(CachedInSlot, inner),
        st.builds(Row, inner),
        st.builds(Counted, n=st.integers(0, 9)),
        st.builds(Plain, inner),
        st.builds(Slotted, inner),
        st.builds(Mixed, inner),
        st.builds(Model, name=st.text(max_size=3)),
        st.builds(Numbers, st.lists(st.integers(), max_size=3)),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


def types_in(value: Any) -> list[type]:
    if isinstance(value, list | enum.Enum):
        parts = value if isinstance(value, list) else []
    else:
        names = getattr(value, "__struct_fields__", ()) or getattr(value, "__slots__", ())
        parts = [getattr(value, n) for n in names if n != "__weakref__" and hasattr(value, n)]
        parts += list(getattr(value, "__dict__", {}).values())
        parts += list(value) if isinstance(value, tuple) else []
    return [type(value), *sorted((t for part in parts for t in types_in(part)), key=repr)]


def redefined(name: str, *fields: str) -> type:
    """Return a dataclass of this module, as if its source had changed."""
    return dataclasses.make_dataclass(name, fields, namespace={"__module__": __name__})


@given(INSTANCES)
def test_an_instance_arrives_equal_and_of_its_type(value: Any) -> None:
    arrived = decode_value(encode_value(value))

    assert arrived == value
    assert types_in(arrived) == types_in(value)


@given(st.lists(INSTANCES, min_size=1, max_size=12))
def test_a_batch_arrives(values: list[Any]) -> None:
    body = b"".join(encode_batch(values, [0] * len(values)))

    arrived = decode_batch(body, len(values)).values

    assert arrived == values
    assert list(map(type, arrived)) == list(map(type, values))


@pytest.mark.parametrize("value", [*Access, Access.READ | Access.WRITE, Access(0), Bits(9)])
def test_flags_arrive(value: Any) -> None:
    arrived = decode_value(encode_value([value]))[0]

    assert arrived is value or (type(arrived) is type(value) and arrived == value)


def test_members_arrive_as_themselves() -> None:
    """People compare them by identity; an alias is the member that it stands for."""
    members = [Colour.RED, Colour.ROUGE, Colour.GREEN] * 5
    body = b"".join(encode_batch(members, [0] * 15))

    assert all(a is b for a, b in zip(decode_batch(body, 15).values, members, strict=True))


def test_what_is_computed_again_is_left_out() -> None:
    """A cached property, and the types that typing notes."""
    rush = Rush("book", by="noon")
    assert rush.label

    assert "label" not in vars(decode_value(encode_value(rush)))
    assert decode_value(encode_value(Crate[int](1))) == Crate(1)


def test_an_attribute_beside_the_fields_is_not_lost_in_silence() -> None:
    """It would be missing where the record arrives."""
    order = Order("book")
    order.note = "mine"  # type: ignore[attr-defined] # the mistake

    with pytest.raises(CannotTravel, match=r"'note' beside its fields.*declare 'note'"):
        encode_value([order])
    with pytest.raises(CannotTravel, match="'note' beside its fields"):
        encode_batch([order, order], [0, 0])


@pytest.mark.parametrize(
    ("cls", "why"),
    [
        (CleansUp, "__del__"),
        (GeneratorType, "it runs, .*make a list of what it gives"),
        (Reduced, "__reduce__"),
        (Single, "__new__"),
        (type("Count", (int,), {}), "a kind of int"),
        (type("Bag", (dict,), {}), "a kind of dict"),
        (type("Failure", (Exception,), {}), "a kind of"),
        (subprocess.CompletedProcess, "no plain data"),
        (RecordRegistry, "no plain data"),
        (ctypes.c_int, "no plain data"),
        (ModuleType, "no plain data"),
        (Page[int], "generic model"),
    ],
)
def test_what_may_be_more_than_its_attributes_is_refused(cls: type, why: str) -> None:
    """Half of it would arrive."""
    with pytest.raises(NotAllowed, match=why):
        form_of(cls, "x:Y")


def test_a_class_that_others_would_not_find_is_refused() -> None:
    @dataclasses.dataclass
    class Local:
        x: int

    with pytest.raises(CannotTravel, match="define it at the top of its module"):
        encode_value(Local(1))


def test_a_class_with_other_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = encode_value(Order("book"))
    again = redefined("Order", "item", "price")
    monkeypatch.setattr(sys.modules[__name__], "Order", again)

    with pytest.raises(ProtocolError, match="other fields here"):
        decode_value(stored)


def test_a_member_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The enumeration has changed since."""
    stored = encode_value(Colour.GREEN)

    class Fewer(enum.Enum):
        RED = 1

    Fewer.__qualname__ = "Colour"
    monkeypatch.setattr(sys.modules[__name__], "Colour", Fewer)

    with pytest.raises(ProtocolError, match="has no member 'GREEN'"):
        decode_value(stored)


def test_where_values_are_only_shown_no_class_is_looked_up() -> None:
    stored = encode_value([Colour.RED])

    with pytest.raises(ProtocolError, match="not registered here"):
        decode_value(stored, NO_CLASSES)
    with pytest.raises(CannotTravel, match="was not registered"):
        encode_value(Colour.RED, NO_CLASSES)


def test_a_serializer_comes_before_what_gearpy_does() -> None:
    registry = RecordRegistry()
    register_serializer(Money, lambda each: each.cents, Money, registry=registry)
    stored = encode_value({"price": [Money(5)]}, registry)

    assert decode_value(stored, registry) == {"price": [Money(5)]}
    with pytest.raises(ProtocolError, match="another form"):
        decode_value(stored, RecordRegistry())


def test_a_serializer_that_raises_is_named() -> None:
    registry = RecordRegistry()
    register_serializer(Money, lambda each: 1 // each.cents, lambda n: n / 0, registry=registry)

    with pytest.raises(CannotTravel, match="its serializer raised ZeroDivisionError"):
        encode_value(Money(0), registry)
    with pytest.raises(ProtocolError, match="Money' raised ZeroDivisionError"):
        decode_value(encode_value(Money(1), registry), registry)


def test_two_classes_cannot_share_the_name_of_a_serializer() -> None:
    """Else the wrong one would be made."""
    registry = RecordRegistry()
    registry.adopt(SerializerForm(Money, "m", str, Money))

    with pytest.raises(ConfigError, match="'m' is taken by"):
        registry.adopt(SerializerForm(Plain, "m", str, Plain))


EMPTY: dict[type, Any] = {
    Order: Order(1),
    Point: Point(1),
    Made: Made(1),
    Model: Model(name="a"),
    Row: Row(1),
    Counted: Counted(n=1),
    Plain: Plain(1),
    Slotted: Slotted(1),
    Colour: Colour.RED,
    Access: Access.ALL,
}


@given(
    st.sampled_from([*EMPTY]),
    st.lists(
        st.one_of(st.none(), st.text(max_size=5), st.dictionaries(st.text(), st.none())), max_size=3
    ),
)
def test_other_values_than_were_sent_raise_a_protocol_error(cls: type, parts: list[Any]) -> None:
    """They come from another process; nothing but the documented error may come out."""
    registry = RecordRegistry()
    form = form_of(cls, f"{__name__}:{cls.__qualname__}")
    nonsense = SerializerForm(cls, form.name, lambda _: parts, lambda _: None)
    nonsense.fingerprint = form.fingerprint
    registry.adopt(nonsense)
    data = encode_value(EMPTY[cls], registry)

    try:
        made = decode_value(data)
    except ProtocolError:
        return
    assert type(made) is cls
