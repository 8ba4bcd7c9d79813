"""Applications are found in a checkpoint store without a cluster."""

import pytest

from gearpy.cluster.checkpoints.reading import find_application, stored_prefixes
from gearpy.errors import ConfigError
from gearpy.storage.checkpoints import MemoryCheckpoints


def a_store(*names: str) -> MemoryCheckpoints:
    """Return a store with these files."""
    checkpoints = MemoryCheckpoints()
    for each in names:
        checkpoints.save(each, [b""])
    return checkpoints


STORE = a_store(
    "k3f9a1c2/app3/epochs/region0/e1",
    "k3f9a1c2/app3/coordinator/open-1",
    "k3f9a1c2/app30/epochs/e1",
    "0a0a0a0a/app3/epochs/e1",
    "app4/region0/e1",
    "other/thing/app5/x",
    "app6",
)


def test_an_application_is_below_its_cluster() -> None:
    """Several clusters may share a store, and a store may be of one alone."""
    assert stored_prefixes(STORE) == {
        "0a0a0a0a/app3": 3,
        "k3f9a1c2/app3": 3,
        "app4": 4,
        "k3f9a1c2/app30": 30,
    }
    assert stored_prefixes(STORE, "0a0a0a0a") == {"0a0a0a0a/app3": 3}


def test_the_only_one_is_found() -> None:
    """Nobody need know the cluster's id."""
    assert find_application(STORE, "30") == "k3f9a1c2/app30"
    assert find_application(STORE, "4") == "app4"


def test_one_of_several_is_chosen_by_its_cluster() -> None:
    """The text says which there are."""
    assert find_application(STORE, "3", cluster="0a0a0a0a") == "0a0a0a0a/app3"
    assert find_application(STORE, "4", cluster="") == "app4"
    with pytest.raises(ConfigError, match="clusters, 0a0a0a0a, k3f9a1c2: choose one with --cluste"):
        find_application(STORE, "3")


def test_what_is_not_there_is_told_with_what_is() -> None:
    """A typing error, a wrong store, or an application that has succeeded."""
    with pytest.raises(ConfigError, match=r"of application 7 in the .* only of: 0a0a0a0a/a"):
        find_application(STORE, "7")
    with pytest.raises(ConfigError, match="of application 3 of cluster 'x' in the"):
        find_application(STORE, "3", cluster="x")
    with pytest.raises(ConfigError, match="only of: none; what succeeded is deleted after"):
        find_application(a_store(), "7")


def test_many_others_are_counted() -> None:
    """An error is a few lines."""
    store = a_store(*(f"k/app{each}/x" for each in range(15)))

    with pytest.raises(ConfigError, match="k/app8, k/app9 and 5 more;"):
        find_application(store, "99")


def test_a_cluster_without_a_name_is_told_as_such() -> None:
    """An application of a store for one cluster beside one of several."""
    with pytest.raises(ConfigError, match="several clusters, '', k:"):
        find_application(a_store("app3/x", "k/app3/x"), "3")
