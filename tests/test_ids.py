"""Node texts, see `gearpy.ids`."""

import pytest

from gearpy.ids import address_of, incarnation_of, is_same_node, node_text


def test_a_node_text_holds_address_and_incarnation() -> None:
    for address in ("host:1", "[::1]:1"):
        node = node_text(address, "ab")
        assert (address_of(node), incarnation_of(node)) == (address, "ab")


def test_an_address_alone_has_no_incarnation() -> None:
    assert (address_of("host:1"), incarnation_of("host:1")) == ("host:1", "")


@pytest.mark.parametrize(
    ("node", "other", "same"),
    [
        ("a:1#x", "a:1#x", True),
        ("a:1#x", "a:1#y", False),
        ("a:1#x", "alias:1#x", True),
        ("a:1#x", "a:1", True),
        ("a:1", "a:1#x", True),
        ("a:1", "b:1", False),
        ("a:1#x", "b:1", False),
        ("a:1#x", "", False),
    ],
)
def test_incarnations_tell_processes_apart_and_addresses_where_there_is_none(
    node: str,
    other: str,
    same: bool,  # noqa: FBT001 - the outcome
) -> None:
    assert is_same_node(node, other) is same
