"""A graph of JSON becomes a program; its mistakes are told all at once."""

from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.services.programs.graphs import SubmittedGraph, program_of

GRAPH: dict[str, Any] = {
    "appName": "words",
    "processors": {
        "0": {"taskClass": "shop.tasks.Split", "description": "split", "taskConf": {"rounds": 2}},
        "1": {"taskClass": "shop.tasks.Sum", "parallelism": 2},
    },
    "dag": {
        "vertexList": [0, 1],
        "edgeList": [[0, "org.apache.gearpump.streaming.partitioner.HashPartitioner", 1]],
    },
    "userConfig": None,
}


def test_a_graph_becomes_a_program() -> None:
    assert program_of(SubmittedGraph.model_validate(GRAPH)) == (
        '"""Made of the graph words, which was submitted as JSON."""\n'
        "\n"
        "import gearpy as gp\n"
        "from shop.tasks import Split as Task0\n"
        "from shop.tasks import Sum as Task1\n"
        "from gearpy import HashPartitioner as Partitioner0\n"
        "\n"
        "processor0 = gp.Processor(Task0, parallelism=1, name='split', config={'rounds': 2})\n"
        "processor1 = gp.Processor(Task1, parallelism=2, name='', config={})\n"
        "graph = gp.Graph()\n"
        "graph.add(processor0)\n"
        "graph.add(processor1)\n"
        "graph.connect(processor0, processor1, Partitioner0())\n"
        "app = gp.StreamApplication('words', graph)\n"
    )


def test_pairs_are_taken_as_gearpump_writes_them() -> None:
    pairs = [[int(key), value] for key, value in GRAPH["processors"].items()]

    graph = SubmittedGraph.model_validate({**GRAPH, "processors": pairs})

    assert graph == SubmittedGraph.model_validate(GRAPH)


def test_mistakes_are_told_together() -> None:
    wrong = {
        **GRAPH,
        "processors": {"0": {"taskClass": "os; import sys"}, "3": {"taskClass": "a.class"}},
        "dag": {"vertexList": [0], "edgeList": [[0, "hash", 7]]},
    }

    with pytest.raises(ConfigError) as raised:
        program_of(SubmittedGraph.model_validate(wrong))

    assert list(raised.value.mistakes) == [
        "processors and dag.vertexList do not name the same: 3 is in one of them only",
        "processor 0: 'os; import sys' is no dotted name of a class",
        "processor 3: 'a.class' is no dotted name of a class",
        "an edge names processor 7, which is not there",
        "edge 0 -> 7: 'hash' is no name of a partitioner",
    ]
