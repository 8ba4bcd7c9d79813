"""Names in a checkpoint store, and the epochs that applications begin with."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.master.checkpoint_names import ResumePoint, new_cluster_id
from gearpy.errors import ConfigError
from gearpy.ids import AppId

NUMBERS = st.integers(1, 10**18 - 1)
POINTS = st.builds(
    ResumePoint,
    cluster_id=st.integers().map(lambda seed: new_cluster_id(Random(seed))),
    app_id=NUMBERS.map(AppId),
    epoch=st.none() | NUMBERS,
).flatmap(
    lambda point: st.sampled_from(
        [
            point,
            replace(point, allows_drop=True),
            replace(point, is_restart=True),
            replace(point, epoch=None, savepoint="before.the-sale_1", allows_drop=True),
        ]
    )
)


def test_a_point_names_an_epoch_or_the_newest() -> None:
    """Nothing behind the sign means that whoever begins shall look; a word is a savepoint."""
    one, newest = ResumePoint.parse("k3f9a1c2/app3@7"), ResumePoint.parse("k3f9a1c2/app3@")

    assert ResumePoint.parse("k3f9a1c2/app3@before").savepoint == "before"
    assert one == ResumePoint(cluster_id="k3f9a1c2", app_id=AppId(3), epoch=7)
    assert newest == ResumePoint(cluster_id="k3f9a1c2", app_id=AppId(3))
    assert one.prefix == newest.prefix == "k3f9a1c2/app3"


@given(POINTS)
def test_what_is_written_is_read(point: ResumePoint) -> None:
    """The invariant: it travels, and is stored, as text."""
    assert ResumePoint.parse(str(point)) == point


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "3",
        "3@7",
        "k3f9a1c2/app3",
        "k3f9a1c2/app3@0",
        "k3f9a1c2/app3@07",
        "k3f9a1c2/app3@-1",
        "k3f9a1c2/app3@7@8",
        "k3f9a1c2/app3@7 ",
        "k3f9a1c2/app3@7\n",
        "k3f9a1c2/app0@7",
        "k3f9a1c2/app٣@7",
        "k3f9a1c2/app3/epochs@7",
        "K3F9A1C2/app3@7",
        "k3f9a1c/app3@7",
        "../../../app3@7",
        f"k3f9a1c2/app{'9' * 5000}@7",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """Also those that would lead out of the store, and numbers without end."""
    with pytest.raises(ConfigError, match="is no place to resume from") as caught:
        ResumePoint.parse(text)

    assert len(str(caught.value)) < 400


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        point = ResumePoint.parse(text)
    except ConfigError:
        return
    assert str(point) == text
