"""The stream of events, as server-sent events and as a WebSocket."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from fastapi import APIRouter, Header, Query, WebSocket
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from msgspec.structs import replace

from gearpy.errors import GearpyError, SubmitRefused
from gearpy.ids import AppId, ExecutorId
from gearpy.messages.client import GetApplication, ReadLog
from gearpy.services.deps import ID_MAX, Deps, Given, deps_of
from gearpy.services.problems import ProblemRaised, answer_of
from gearpy.services.push.frames import as_message, frame, id_of
from gearpy.services.push.topics import TooManyViewers, TopicLook

router: Final = APIRouter(tags=["events"])

#: Where the WebSocket is, below the API.
SOCKET: Final = "/websocket"
_GOING_AWAY: Final = 1001  # The services end.
_TIME_MAX: Final = 2**53 - 1
_VIEW_S: Final = 1.0
_OVERVIEW_S: Final = 2.0
_LOG_S: Final = 1.0
_LOG_LINES: Final = 200
_LOG_FRAMES: Final = 50

_App: TypeAlias = Annotated[int | None, Query(ge=0, le=ID_MAX, description="This one alone.")]
_Executor: TypeAlias = Annotated[
    int | None, Query(ge=-1, le=ID_MAX, description="Its log as well; -1: the app master's.")
]
_Topic = tuple[Hashable, TopicLook, float, int]


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def get_events(
    given: Given,
    *,
    app: _App = None,
    executor: _Executor = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    """Send `overview` each 2 s, or `view` of an application each second while it changes.

    With an executor, `log` brings what it has logged. `trouble` says that the cluster does not
    answer. With the header Last-Event-ID, which browsers send when they come back, `series` brings
    what was missed.
    """
    frames = await _watched(given, app, executor, id_of(last_event_id))
    return StreamingResponse(
        frames, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


@router.websocket(SOCKET)
async def send_events(
    socket: WebSocket,
    *,
    app: _App = None,
    executor: _Executor = None,
    since_ms: Annotated[int | None, Query(ge=0, le=_TIME_MAX)] = None,
) -> None:
    """Send the same as messages: JSON with `event`, `id` and `data`. Nothing is listened to."""
    try:
        frames = await _watched(deps_of(socket), app, executor, since_ms)
    except (ProblemRaised, GearpyError) as error:
        await socket.send_denial_response(answer_of(error))
        return
    await socket.accept()
    sending = asyncio.create_task(_send_all(socket, frames))
    leaving = asyncio.create_task(_until_gone(socket))
    await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    for each in (sending, leaving):
        each.cancel()
    await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send_all(socket: WebSocket, frames: AsyncGenerator[bytes]) -> None:
    async with aclosing(frames):
        async for sent in frames:
            if message := as_message(sent):
                await socket.send_text(message)
    await socket.close(_GOING_AWAY)


async def _until_gone(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _watched(
    given: Deps, app: int | None, executor: int | None, since_ms: int | None
) -> AsyncGenerator[bytes]:
    """Return the frames that a viewer wants; raises what its answer says instead."""
    first, wanted = list[bytes](), list[_Topic]()
    if app is None:
        look = _Changes("overview", given.watching.overview)
        wanted.append((("overview",), look, _OVERVIEW_S, 1))
    else:
        app_id = AppId(app)
        # There may be no such application: that is a 404.
        await run_in_threadpool(given.client.ask, GetApplication(app_id=app_id))
        changes = _Changes("view", lambda: given.watching.application(app_id))
        wanted.append((("view", app_id), changes, _VIEW_S, 1))
        if executor is not None:
            lines = _LogLines(given, app_id, ExecutorId(executor))
            wanted.append((("log", app_id, executor), lines, _LOG_S, _LOG_FRAMES))
        if since_ms is not None:
            first += await run_in_threadpool(_missed, given, app_id, since_ms)
    try:
        return given.topics.watch(wanted, first)
    except TooManyViewers:
        raise ProblemRaised(
            429, "there are as many event streams as there may be", "close another page"
        ) from None


def _missed(given: Deps, app_id: AppId, since_ms: int) -> list[bytes]:
    """Return a frame with the points since a time, if there is an app master that has them."""
    try:
        data = given.client.series(app_id, since_ms)
    except SubmitRefused:
        return []
    return [frame("series", msgspec.json.encode(data))]


class _Changes:
    """Gives a frame when a view has changed in more than its time."""

    def __init__(self, event: str, view: Callable[[], Any]) -> None:
        self._event = event
        self._view = view
        self._before: Any = None

    def __call__(self, again: bool) -> bytes | None:  # noqa: FBT001 - topics call it
        view = self._view()
        timeless = replace(view, at_ms=0)
        if timeless == self._before and not again:
            return None
        self._before = timeless
        return frame(self._event, msgspec.json.encode(view), event_id=view.at_ms)


class _LogLines:
    """Gives a frame with what was logged since the one before."""

    def __init__(self, given: Deps, app_id: AppId, executor_id: ExecutorId) -> None:
        self._client = given.client
        self._of = app_id, executor_id
        self._position = ""

    def __call__(self, again: bool) -> bytes | None:  # noqa: FBT001 - topics call it
        app_id, executor_id = self._of
        question = ReadLog(
            app_id=app_id, executor_id=executor_id, lines=_LOG_LINES, after=self._position
        )
        try:
            read = self._client.ask(question)
        except SubmitRefused:  # No log, or none yet: `GET .../log` says why. The cluster is there.
            return None
        is_first, self._position = not self._position, read.position
        if not read.text and not is_first and not again:
            return None
        content = {"executor": executor_id, "text": read.text, "position": read.position}
        return frame("log", msgspec.json.encode(content))
