"""Which errors of a store may pass, and how long a step waits for it."""

import errno
import json
from random import Random

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from gearpy.storage.folder.at import file_system_at
from gearpy.storage.folder.url import PATIENCE_MS, Retries, passes

BUSY = OSError(errno.EBUSY, "slow down")


class HTTPClientError(Exception):
    """An error of a library that is no `OSError`, known by its name."""


class AnswerError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def made_of(cause: Exception) -> OSError:
    error = OSError(f"told: {cause!r}")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        BUSY,
        TimeoutError(),
        ConnectionResetError(errno.ECONNRESET, "reset"),
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        HTTPClientError(),
        AnswerError(500),
        AnswerError(503),
        AnswerError(429),
        made_of(BUSY),
        made_of(made_of(HTTPClientError())),
    ],
    ids=repr,
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert passes(error)


def test_an_error_that_is_its_own_cause_ends() -> None:
    error = ValueError()
    error.__cause__ = error

    assert not passes(error)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Namenode is in startup mode", True),
        ("Cannot create file/a. Name node is in safe mode.", True),
        ("Operation category WRITE is not supported in state standby", True),
        ("Failed to find datanode, suggest to check cluster health.", True),
        ("The directory item limit is exceeded", False),
    ],
)
def test_a_name_node_that_starts_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, message: str, *, expected: bool
) -> None:
    files, path = file_system_at("webhdfs://names:9870/out", {"skip_instance_cache": True})
    answer = requests.Response()
    answer.status_code = 403
    answer._content = json.dumps(  # noqa: SLF001 - requests has no other way to make one
        {"RemoteException": {"exception": "IOException", "message": message}}
    ).encode()
    monkeypatch.setattr(files.session, "request", lambda **_: answer)

    with pytest.raises(OSError, match=message) as caught:
        files.info(path)
    assert passes(caught.value) is expected


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "none"),
        FileExistsError(errno.EEXIST, "there is one"),
        PermissionError(errno.EACCES, "denied"),
        OSError(errno.ENOSPC, "full"),
        OSError("no number"),
        AnswerError(404),
        AnswerError(403),
        AnswerError(501),
        ValueError("a mistake"),
    ],
    ids=repr,
)
def test_what_does_not_pass_is_told_at_once(error: Exception) -> None:
    """Waiting would only hide it."""
    assert not passes(error)
    assert Retries(0, Random(0)).pause_ms(error, 0) is None


@given(st.integers(), st.lists(st.integers(0, 20_000)))
def test_pauses_grow_and_end(seed: int, tries_ms: list[int]) -> None:
    """Each is between half and all of 100 ms, doubled with each try up to 5 s; none ends late."""
    retries, now_ms, most_ms = Retries(0, Random(seed)), 0.0, 100.0
    for took_ms in tries_ms:
        now_ms += took_ms
        pause = retries.pause_ms(BUSY, now_ms)
        if pause is None:
            assert now_ms + most_ms > PATIENCE_MS
            return
        assert most_ms / 2 <= pause <= most_ms
        now_ms += pause
        assert now_ms <= PATIENCE_MS
        most_ms = min(2 * most_ms, 5000)
