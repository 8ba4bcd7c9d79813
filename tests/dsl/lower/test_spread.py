"""Programs that are built for several processes."""

import pytest

import gearpy as gp
from gearpy.core.app.hosts import PROGRAM_PROCESS
from gearpy.task.api.application import Graph, Processor, StreamApplication


def an_app(parallelism: int | None = None) -> gp.StreamApp:
    app = gp.StreamApp("spread", parallelism=parallelism)
    numbers = app.read(gp.collection([1, 2, 3], partitions=2), name="numbers")
    numbers.map(abs).key_by(abs).count(name="count").write(gp.to_list([]), name="show")
    return app


def tasks_of(application: StreamApplication) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {
        step.id: (spec.parallelism, spec.hosts)
        for spec in application.dag.processors.values()
        for step in spec.steps
        if step.id in {"numbers", "count", "show"}
    }


def test_tasks_follow_the_processes_where_the_program_leaves_it_open() -> None:
    """A source has no more than its parts; the list is filled in the program's process."""
    here = (PROGRAM_PROCESS,)

    assert tasks_of(an_app().build().spread(4)) == {
        "numbers": (2, ()),
        "count": (4, ()),
        "show": (4, here),
    }
    assert tasks_of(an_app(3).build().spread(4)) == {
        "numbers": (2, ()),
        "count": (3, ()),
        "show": (3, here),
    }


def test_a_file_with_a_name_has_one_task_unless_the_program_says_how_many() -> None:
    def written(sink: gp.Sink, parallelism: int | None = None) -> int:
        app = gp.StreamApp("written", parallelism=parallelism)
        numbers = app.read(gp.collection([1, 2], partitions=2))
        numbers.key_by(abs).count(name="count").write(sink, name="show")
        return tasks_of(app.build().spread(2))["show"][0]

    assert written(gp.jsonl_folder("numbers")) == 2
    assert written(gp.jsonl_file("numbers.jsonl")) == 1
    assert written(gp.jsonl_file("numbers.jsonl"), parallelism=2) == 2


def test_one_process_changes_nothing() -> None:
    application = an_app().build()

    assert application.spread(1) is application
    assert tasks_of(application) == {"numbers": (1, ()), "count": (1, ()), "show": (1, ())}


@pytest.mark.parametrize("source", [gp.stdin(), gp.poll(list[str], every="1s")])
def test_what_is_read_here_has_tasks_here_and_what_follows_has_not(source: gp.Source[str]) -> None:
    app = gp.StreamApp("read")
    app.read(source, name="numbers").map(str.upper, name="count").write(
        gp.jsonl_folder("out"), name="show"
    )

    assert tasks_of(app.build().spread(2)) == {
        "numbers": (1, (PROGRAM_PROCESS,)),
        "count": (1, ()),
        "show": (1, ()),
    }


def test_a_graph_by_hand_keeps_its_tasks() -> None:
    class Ends(gp.Task):
        """Takes what comes."""

    source = Processor(Ends, 3, "numbers", source=gp.collection([1] * 3, partitions=3))
    sink = Processor(Ends, 2, "show", sink=gp.to_list([]))

    spread = StreamApplication("by-hand", Graph().connect(source, sink)).spread(2)

    assert tasks_of(spread) == {"numbers": (3, ()), "show": (2, (PROGRAM_PROCESS,))}
