"""What an app master knows of its application before it asks for slots."""

from collections.abc import Sequence

import pytest

import gearpy as gp
from gearpy.cluster.programs.outline import near_data


class At(gp.Source):
    def __init__(self, *hosts: str, error: str = "") -> None:
        self.machines = hosts
        self.error = error

    def partitions(self) -> Sequence[str]:
        return ["only"]

    def open(self, partition: str, resume: object) -> gp.SourceReader:
        raise NotImplementedError

    def hosts(self) -> Sequence[str]:
        if self.error:
            raise OSError(self.error)
        return self.machines


def an_application(*sources: gp.Source) -> gp.StreamApplication:
    app = gp.StreamApp("near")
    for source in sources:
        app.read(source).write(gp.to_list([]))
    return app.build()


def test_machines_with_the_data_are_known_by_both_their_names() -> None:
    application = an_application(At("n1.example.org", "n2"), At("n2"), gp.collection([1]))
    assert near_data(application) == ("n1.example.org", "n1", "n2")


def test_a_store_that_does_not_tell_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert near_data(an_application(At("n1"), At(error="no name node"))) == ()
    assert caplog.messages == ["application near: where its data is, is not known: no name node"]
