"""A program whose sources and sinks are others gives what it gave."""

import gearpy as gp
from gearpy.dsl.lower.rewired import gathering
from gearpy.spark.query.recorded import HeldSource
from gearpy.testing import Simulation

#: More than a source gives at a time, so that the watermark has moved before the late one.
_EVENTS = [gp.Message("a", 0), *[gp.Message("b", 25)] * 3000, gp.Message("late", 3)]


def _app() -> tuple[gp.StreamApp, gp.Source]:
    app, source = gp.StreamApp("app"), gp.collection(_EVENTS)
    counts = app.read(source).window(gp.tumbling("10ms")).count(name="counts")
    counts.write(gp.to_list([]), name="counted")
    counts.map(lambda result: result.value).write(gp.to_list([]), name="values")
    app.read(gp.collection([1])).inspect(print)  # Nothing of it comes to a sink.
    return app, source


def test_what_goes_to_sinks_is_gathered_by_sink() -> None:
    """Each record with its event time; the sinks of the program get nothing."""
    app, _ = _app()

    gathered = gathering("app", app.plan, parallelism=1, sources={})
    simulation = Simulation(gathered.application).run()

    counted, values = gathered.written
    assert [(m.value.start, m.value.value, m.timestamp) for m in counted] == [
        (0, 1, 9),
        (20, 3000, 29),
    ]
    assert [m.value for m in values] == [1, 3000]
    assert sum(each.late_records for each in simulation.clocks()) == 1


def test_late_records_are_gathered_by_step() -> None:
    app, _ = _app()

    gathered = gathering("app", app.plan, parallelism=1, sources={}, late="gather")
    Simulation(gathered.application).run()

    late = {step: messages for step, messages in gathered.late.items() if messages}
    assert [m.value for messages in late.values() for m in messages] == ["late"]


def test_nothing_is_late_for_event_time_that_stands_still() -> None:
    app, source = _app()

    gathered = gathering(
        "app", app.plan, parallelism=1, sources={source: HeldSource(source)}, late="keep"
    )
    simulation = Simulation(gathered.application).run()

    assert [m.value.value for m in gathered.written[0]] == [2, 3000]
    assert sum(each.late_records for each in simulation.clocks()) == 0


def test_a_side_output_is_that_of_the_copy() -> None:
    """Else the copy would read the step of the other program."""
    app = gp.StreamApp("sides")
    small, large = app.read(gp.collection([1, 20])).split(lambda n: n < 10)
    small.write(gp.to_list([]), name="small")
    large.write(gp.to_list([]), name="large")

    gathered = gathering("sides", app.plan, parallelism=1, sources={})
    Simulation(gathered.application).run()

    assert [[m.value for m in written] for written in gathered.written] == [[1], [20]]
