"""What becomes of the state of steps when one graph takes the place of another."""

from gearpy.core.dag.graph import Dag, ProcessorSpec, StepSpec
from gearpy.core.dag.state_moves import Layout, layout_of, lost, state_moves
from gearpy.ids import ProcessorId


def a_layout(*processors: str, parallelism: int = 1, **keeps: str) -> Layout:
    """Return the layout of processors with steps, such as ``"a b"``; all keep something."""
    specs = {
        ProcessorId(number): ProcessorSpec(
            id=ProcessorId(number),
            name=steps,
            parallelism=parallelism,
            steps=tuple(StepSpec(id=name, keeps=keeps.get(name, name)) for name in steps.split()),
        )
        for number, steps in enumerate(processors)
    }
    return layout_of(Dag(0, specs))


def fates(old: Layout, new: Layout) -> dict[str, str]:
    return {each.id: each.fate for each in state_moves(old, new)}


def test_the_same_graph_keeps_all() -> None:
    layout = a_layout("a b", "c")

    assert set(fates(layout, layout).values()) == {"kept"}


def test_numbers_of_processors_do_not_count() -> None:
    assert fates(a_layout("a", "b c"), a_layout("new", "a", "b c")) == {
        "new": "new",
        "a": "kept",
        "b": "kept",
        "c": "kept",
    }


def test_steps_move_between_processors() -> None:
    assert fates(a_layout("a b", "c"), a_layout("a", "b", "c")) == {
        "a": "kept",
        "b": "moved",
        "c": "kept",
    }
    assert fates(a_layout("a", "b"), a_layout("a b")) == {"a": "kept", "b": "moved"}


def test_what_is_kept_in_another_form_is_lost() -> None:
    moves = state_moves(a_layout("a b c", c=""), a_layout("a", a="other"))

    assert {each.id: each.fate for each in moves} == {
        "a": "changed",
        "b": "dropped",
        "c": "dropped",
    }
    assert [each.id for each in lost(moves)] == ["a", "b"]
    assert str(moves[0]) == "changed  [a]: kept a; now other"


def test_another_number_of_tasks_is_told() -> None:
    (move,) = state_moves(a_layout("a"), a_layout("a", parallelism=3))

    assert move.fate == "kept"
    assert move.is_spread_anew
    assert str(move) == "kept  [a]: x1 to x3: a"
