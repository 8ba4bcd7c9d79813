"""The records of the master's log."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.master.commands import (
    AddQuarantined,
    AddWorker,
    ChangeStatus,
    ForgetEnded,
    LaunchAppMaster,
    LoseAppMaster,
    MasterCommand,
    NameCluster,
    RemoveQuarantined,
    StoreValue,
    Submit,
    decode_command,
    encode_command,
)
from gearpy.errors import ProtocolError
from gearpy.ids import MIN_MS, AppId, WorkerId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ErrorCard

ERROR = ErrorCard(cause="boom", event_time_ms=MIN_MS, traceback="at line 1\n")
COMMANDS: list[MasterCommand] = [
    NameCluster(cluster_id="k3f9a1c2"),
    Submit(
        request=SubmitApplication(
            name="words",
            artifact=Artifact(kind="stored", location="ab", args=("a", "ü")),
            config={"worker.slots": "3"},
            resume_from="k3f9a1c2/app3@7",
        ),
        at_ms=5,
    ),
    ChangeStatus(
        app_id=AppId(1),
        status="failed",
        at_ms=6,
        progress=ApplicationProgress(records_in=7, watermark_ms=MIN_MS),
        cause=ERROR,
    ),
    LaunchAppMaster(app_id=AppId(1), worker_id=WorkerId(0), at_ms=7),
    LoseAppMaster(app_id=AppId(1), launch=1, at_ms=8, restarts=3),
    StoreValue(app_id=AppId(1), key="k", value=b"\x00\xff"),
    AddQuarantined(
        app_id=AppId(1), processor_id=2, value=b"v", event_time_ms=-1, error=ERROR, at_ms=9
    ),
    RemoveQuarantined(app_id=AppId(1), numbers=(1, 2)),
    AddWorker(),
    ForgetEnded(keep=3),
]


def test_a_record_without_a_later_field_is_read() -> None:
    record = msgspec.msgpack.encode(
        (1, "ChangeStatus", {"app_id": 1, "status": "active", "at_ms": 1, "progress": {}})
    )

    command = decode_command(record)

    assert isinstance(command, ChangeStatus)
    assert command.cause is None


@pytest.mark.parametrize(("version", "name"), [(2, "AddWorker"), (1, "Unheard")])
def test_a_record_of_another_gearpy_is_refused(version: int, name: str) -> None:
    """To skip it would be to forget what was promised."""
    record = msgspec.msgpack.encode((version, name, {}))

    with pytest.raises(ProtocolError, match="start the gearpy that wrote it"):
        decode_command(record)


@given(st.binary(max_size=40) | st.sampled_from([encode_command(each)[:-1] for each in COMMANDS]))
def test_other_bytes_are_refused(record: bytes) -> None:
    """With one kind of error, whatever they are."""
    with pytest.raises(ProtocolError):
        decode_command(record)
