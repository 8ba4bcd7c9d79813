"""Texts for people: what was wrong, with values, and what to do."""

import pytest

from gearpy.core.app.causes import nothing_left, other_graph, restart_after_damage, too_few_slots
from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.history import EpochHistory
from gearpy.ids import ActorPath, ExecutorId
from gearpy.messages.app import RegisterExecutor, SnapshotFile, SnapshotsDamaged
from tests.core.manager_bench import a_dag


def test_too_few_slots_says_how_many_and_what_to_do() -> None:
    card = too_few_slots(wanted=8, missing=5, timeout_ms=60_000)

    assert card.cause == (
        "got 3 of 8 slots within 60 s: add workers, raise worker.slots, lower the parallelism, "
        "or stop other applications"
    )


def test_another_graph_is_told_with_the_difference() -> None:
    message = RegisterExecutor(
        executor_id=ExecutorId(3),
        launch=1,
        executor=ActorPath("", "executor"),
        data_address="",
        slots=1,
        graph_hash="beef",
        graph=a_dag((1, 2)).description,
    )

    cause = other_graph(a_dag((1, 1)), message).cause

    assert cause.startswith("executor 3 built another graph than the app master (")
    assert "the same graph in every process" in cause


@pytest.mark.parametrize(
    ("files", "damaged", "text"),
    [
        ({6: ["a"], 7: ["b"]}, "b", "would go back to epoch 6"),
        ({6: ["a"], 7: ["a", "b"]}, "a", "could go on from none of its stored epochs"),
        ({6: ["a"], 7: ["a", "log"]}, "a", "would rebuild its state from the changelog"),
    ],
)
def test_what_a_restart_does_after_damage_is_told(
    files: dict[int, list[str]], damaged: str, text: str
) -> None:
    """Before there is one, so that there is time to bring the file back."""
    manifests = [
        Manifest(
            region=2,
            epoch=epoch,
            attempt=1,
            clock_ms=0,
            snapshots=tuple(
                SnapshotFile(location=n, sha256="", tasks=(), partition=0 if n == "log" else None)
                for n in names
            ),
        )
        for epoch, names in files.items()
    ]
    history = EpochHistory(retained=2, manifests=manifests)
    history.on_damage(damaged)

    assert restart_after_damage(2, history).startswith(f"a restart of region 2 {text}")


def test_nothing_left_names_the_file_the_epochs_and_the_command() -> None:
    manifests = [
        Manifest(region=2, epoch=epoch, attempt=1, clock_ms=0, snapshots=()) for epoch in (6, 7)
    ]
    damaged = SnapshotsDamaged(
        executor_id=ExecutorId(1), version=0, attempt=9, location="k/app1/x", reason="is empty"
    )

    cause = nothing_left(2, damaged, manifests).cause

    assert cause == (
        "region 2 can go on from none of its stored epochs (6, 7), as k/app1/x is needed: "
        "is empty; see what is damaged with 'gear checkpoint verify', bring it back if you can, "
        "and submit the application again: to go on from a checkpoint that is whole, or from the "
        "beginning"
    )
