"""The processors that a program becomes, as text."""

from gearpy.dsl.application import StreamApp


def chains(app: StreamApp) -> list[str]:
    """Return processors with their parallelism, then edges with their partitioners."""
    dag = app.build().dag
    processors = [dag.processors[pid] for pid in dag.order]
    name = {spec.id: spec.name for spec in processors}
    return [f"{spec.name} x{spec.parallelism}" for spec in processors] + [
        f"{name[edge.source]} -> {name[edge.target]}: {edge.partitioner}" for edge in dag.edges
    ]
