"""Programs go when no application needs them, and not before."""

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.programs import ProgramsKept, UnneededSince
from gearpy.ids import AppId
from gearpy.messages.summaries import ApplicationStatus, ApplicationSummary

GRACE_MS = 100


def a_summary(app_id: int, status: ApplicationStatus = "active") -> ApplicationSummary:
    return ApplicationSummary(app_id=AppId(app_id), name=f"app{app_id}", status=status)


def test_what_is_not_needed_goes_after_a_while() -> None:
    """A client uploads first and submits then: in between nothing needs its program."""
    unneeded = UnneededSince[str](GRACE_MS)
    assert unneeded.look(["a", "b"], {"b"}, 0) == []
    assert unneeded.look(["a", "b"], {"b"}, GRACE_MS - 1) == []
    assert unneeded.look(["a", "b"], {"b"}, GRACE_MS) == ["a"]


def test_what_was_asked_for_has_all_its_time_again() -> None:
    unneeded = UnneededSince[str](GRACE_MS)
    unneeded.look(["a"], (), 0)
    unneeded.on_used("a")
    assert unneeded.look(["a"], (), GRACE_MS) == []
    assert unneeded.look(["a"], (), 2 * GRACE_MS) == ["a"]


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["look", "use"]), st.sets(st.integers(0, 2)))
    )
)
def test_nothing_goes_that_was_needed_or_used_a_short_time_ago(
    steps: list[tuple[int, str, set[int]]],
) -> None:
    unneeded, now_ms = UnneededSince[int](GRACE_MS), 0
    good_ms = dict.fromkeys(range(3), 0)
    for after_ms, what, names in steps:
        now_ms += after_ms
        if what == "use":
            for each in names:
                unneeded.on_used(each)
            good_ms |= dict.fromkeys(names, now_ms)
            continue
        gone = unneeded.look(range(3), names, now_ms)
        good_ms |= dict.fromkeys(names, now_ms)
        assert not names & set(gone)
        assert all(now_ms - good_ms[each] >= GRACE_MS for each in gone)


def test_a_refusal_says_what_there_is_and_what_helps() -> None:
    needed = {"a": a_summary(1), "b": a_summary(2, "failed"), "c": a_summary(3)}
    kept = ProgramsKept.of({"a": 5, "b": 30, "x.partial": 1}, needed)

    assert (kept.living, kept.ended, kept.others) == ((1, 5), (1, 30), (1, 1))
    assert kept.refusal(40, lambda size: f"{size} B") == (
        "the programs of this master have 36 B, and artifact.quota-bytes is 40 B: 1 of "
        "applications that run or wait (5 B), 1 of applications that have ended, for gear app "
        "restart (30 B), 1 of none, which go within some hours (1 B); the largest, 30 B, is of "
        "application 2 (app2), which is failed. Raise artifact.quota-bytes of the masters, or "
        "lower artifact.keep-ended"
    )
