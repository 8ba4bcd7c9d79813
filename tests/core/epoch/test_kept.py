"""Epochs that stay although newer ones are complete."""

from gearpy.core.epoch.history import EpochHistory
from gearpy.core.epoch.kept import BeforeFailure, KeptEpochs
from tests.core.epoch.test_history import a_manifest


def test_a_savepoint_is_made_when_all_regions_have_ended_an_epoch() -> None:
    kept = KeptEpochs()
    kept.begin("friday", {0: 8, 1: 3}, {2: 40})
    assert kept.on_stored(0, 7) == {}
    assert kept.on_stored(0, 8) == {}
    assert kept.kept(0) == {8}
    assert kept.on_stored(0, 9) == {}
    assert kept.is_wanted("friday")
    made = {"friday": {0: 8, 1: 4, 2: 40}}
    assert kept.on_stored(1, 4) == made
    assert kept.on_stored(0, 10) == made  # It could not be noted.
    kept.on_named("friday")
    assert kept.on_stored(0, 11) == {}
    assert not kept.is_wanted("friday")
    assert kept.kept(0) == frozenset()


def test_one_of_which_all_has_ended_is_made_at_once() -> None:
    kept = KeptEpochs()
    kept.begin("end", {}, {0: 5})
    assert kept.whole() == {"end": {0: 5}}


def test_the_epoch_before_the_last_failure_stays() -> None:
    kept = KeptEpochs()
    kept.on_failure(0, BeforeFailure(5, 6))
    kept.on_failure(0, BeforeFailure(8, 9))
    assert kept.kept(0) == {8}
    assert kept.failure(0) == BeforeFailure(8, 9)
    assert kept.failure(1) is None


def test_a_history_retires_no_epoch_that_is_kept() -> None:
    history = EpochHistory(retained=1, manifests=map(a_manifest, (1, 2, 3)))
    history.kept = frozenset({1})
    assert history.on_stored(3) == (2,)
    history.discard((2,))
    history.on_complete(a_manifest(4))
    history.kept = frozenset()
    assert history.on_stored(4) == (1, 3)
