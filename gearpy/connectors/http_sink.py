"""Sends records to a URL as JSON, each at least once, and again only under the same key."""

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from random import Random
from socket import SHUT_RDWR
from typing import Any, Final, TypedDict
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from gearpy.clocks import wall_ms
from gearpy.columns.json_text import json_of
from gearpy.config.hidden import host_alone
from gearpy.connectors.files.stamps import each
from gearpy.core.base.pauses import pause_after
from gearpy.core.base.times import Duration, duration_ms
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.task.api.failure import shown
from gearpy.task.api.interfaces import Batch, PacedWriter, RefusedRecord, Sink, SinkContext

_log = logging.getLogger(__name__)

_KEY: Final = "Idempotency-Key"
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_KEYS: Final = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")  #: The name space of RFC 9562 for ids.
_EPOCH_RECORDS_MAX: Final = 200_000
_FIRST_MS: Final = 200
_LONGEST_MS: Final = 30_000
#: A server may ask for a longer pause; it is asked again after so long.
_ASKED_MAX_MS: Final = 3_600_000
_MS_PER_S: Final = 1000
_SAID_BYTES: Final = 300
#: Of a longer answer the rest is not read: the next request has a connection of its own.
_ANSWER_BYTES: Final = 65_536
_CLOSE_S: Final = 5.0
_OK: Final = range(200, 300)
#: These, and all of a server that has failed, may pass by themselves.
_LATER: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_NEVER: Final = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})


def http_sink(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    batch: int | None = None,
    timeout: Duration = "10s",
    name: str = "",
) -> Sink[Any]:
    """POST records to a URL as JSON, at least once: a webhook, or an interface of a service.

    A record is sent when its epoch is complete, about a second after it came. Each task sends its
    records in order, one request after the other. A request that finds no server, or is answered
    by 408, 425, 429 or 5xx, is tried again until it succeeds, after pauses of up to 30 seconds or
    the one of ``Retry-After``; meanwhile the stream waits. Any other answer but 2xx refuses the
    record, which ``application.on-error``, or ``on_error`` of `Stream.write`, then deals with.

    Each request has a header ``Idempotency-Key``. One that is sent again, also after a crash, has
    the same body and key, and no other request has that key: a receiver that leaves out keys that
    it has seen has each record once. (A run that goes on from an older checkpoint, as the newest
    was damaged, sends what came since with new keys.)

    Args:
        url: ``http://`` or ``https://``; shown to people without its path, which may be a secret.
        headers: of each request, such as ``{"Authorization": "Bearer ..."}``; take secrets from
            `os.environ` rather than write them into the program.
        batch: up to so many records are one request, a JSON array; by default each is a request of
            its own. Of an array that is refused each record is sent again, alone in an array.
        timeout: so long a server may say nothing before the request is tried again.
        name: tells apart sinks of an application that send to the same URL.

    Raises:
        ConfigError: an argument is none of these.

    Example:
        >>> import gearpy as gp
        >>> gp.http_sink("https://hooks.example.org/T0/SECRET", batch=100).description
        'http_sink(https://hooks.example.org/***)'
    """
    if not isinstance(url, str):
        raise ConfigError(
            f"http_sink: url is a {type(url).__name__}, must be a text, such as 'https://host/path'"
        )
    operator = f"http_sink({host_alone(url)})"
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # The port is none.
        is_address = False
    if not is_address or not url.isascii() or any(map(str.isspace, url)):
        raise ConfigError(
            f"{operator}: this is no address: write http://host:port/path or https://..., with "
            "other characters than those of ASCII in percent encoding"
        )
    if "@" in parts.netloc:
        raise ConfigError(
            f"{operator}: the address has a login: leave it out, and give "
            "headers={'Authorization': ...}"
        )
    if not isinstance(headers, Mapping | None):
        raise ConfigError(
            f"{operator}: headers are a {type(headers).__name__}, must be a dict, such as "
            "{'Authorization': 'Bearer ...'}"
        )
    for key, value in (headers or {}).items():
        are_texts = all(isinstance(each, str) for each in (key, value))
        if not are_texts or not _HEADER.fullmatch(key) or _CONTROL.search(value):
            raise ConfigError(
                f"{operator}: header {key!r} is none: give a name and a text, in one line"
            )
        if key.lower() in {_KEY.lower(), "content-length", "transfer-encoding", "host"}:
            raise ConfigError(f"{operator}: header {key!r} is set by the sink: leave it out")
    if batch is not None and (type(batch) is not int or batch < 1):
        raise ConfigError(f"{operator}: batch is {batch!r}, must be a whole number from 1")
    if not isinstance(name, str):
        raise ConfigError(f"{operator}: name is {name!r}, must be a text, such as 'orders'")
    timeout_ms = duration_ms(timeout, f"{operator}: timeout")
    if timeout_ms <= 0:
        raise ConfigError(f"{operator}: timeout is {timeout!r}, must be more than 0, such as '10s'")
    return HttpSink(
        HttpTarget(
            operator=operator,
            url=url,
            headers={"Content-Type": "application/json", **(headers or {})},
            batch=batch,
            timeout_s=timeout_ms / _MS_PER_S,
            name=name,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """The receiver, and how it wants its requests; see `http_sink`."""

    operator: str
    url: str
    headers: Mapping[str, str]
    batch: int | None
    timeout_s: float
    name: str

    def connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=self.timeout_s)

    @property
    def path(self) -> str:
        """The path and the query, as a request has them."""
        return urlsplit(self.url)._replace(scheme="", netloc="", fragment="").geturl() or "/"


class HttpSink(Sink[Any]):
    """A URL; see `http_sink`."""

    transactional = True
    repeats = "the same Idempotency-Key"
    paced = True

    def __init__(self, target: HttpTarget) -> None:
        self.target = target

    @property
    def description(self) -> str:
        return self.target.operator

    @property
    def writes(self) -> tuple[str, ...]:
        """The sink's part of keys: two alike would send different records under one key."""
        path = blake2b(self.target.url.encode(), digest_size=4).hexdigest()
        return (f"{self.description}, path {path}, name {self.target.name!r}",)

    def open(self, task_index: int, parallelism: int) -> "HttpWriter":
        return HttpWriter(self.target, self.writes[0], task_index)


class _Later(Exception):
    """No answer, or one that may pass by itself; ``pause_ms`` is that which the server wants."""

    def __init__(self, text: str, pause_ms: int = 0) -> None:
        super().__init__(text)
        self.pause_ms = pause_ms


class HttpEpoch(TypedDict):
    """Records of an epoch, and a UUID of which the keys of their requests are made.

    It is stored with them, so whoever sends them, and whenever, the keys are the same.
    """

    key: str
    values: list[Any]
    timestamps: list[int]


class HttpWriter(PacedWriter[Any]):
    """Sends the records of one task.

    Invariant: an epoch is in ``_due`` until each of its records was taken or refused. Meanwhile no
    epoch ends, so it is in the checkpoint, too.

    Runs on: the task's thread, and one of its own, which sends.
    """

    atomic = True

    def __init__(self, target: HttpTarget, place: str, task_index: int) -> None:
        self._target = target
        self._task = f"{place}, task {task_index}"
        self._start = ""  # The run, and the number of this start.
        self._open = HttpEpoch(key="", values=[], timestamps=[])
        self._closing = threading.Event()
        self._news = threading.Event()  # An epoch is due, or the writer is closed.
        self._due: dict[int, HttpEpoch] = {}
        self._trouble = ""
        self._wake: Callable[[], object] = lambda: None
        self._connection: HTTPConnection | None = None
        self._rng = Random()
        self.refused: deque[RefusedRecord] = deque()
        self._thread = threading.Thread(target=self._run, name="gearpy-http", daemon=True)

    # -- the task ----------------------------------------------------------------------------

    def begin(self, context: SinkContext) -> None:
        self._wake = context.wake

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Begin to send, first the records that may not have been taken.

        Nobody needs to be kept from sending: who was given up has the same records and keys.
        """
        self._start = f"run {run}, start {incarnation}"
        self._due = {number: records for number, records in prepared.items() if records}
        self._thread.start()

    def write_batch(self, batch: Batch[Any]) -> None:
        values = batch.values
        each(self._target.operator, json_of, values)  # One that JSON has no form for is refused.
        if len(self._open["values"]) + len(values) > _EPOCH_RECORDS_MAX:
            raise GearpyError(
                f"{self._target.operator}: more than {_EPOCH_RECORDS_MAX:,} records came before "
                "their epoch could end: raise the parallelism, or lower checkpoint.interval-ms"
            )
        self._open["values"] += values
        self._open["timestamps"] += batch.timestamps

    @property
    def epoch_fill(self) -> float:
        return len(self._open["values"]) / _EPOCH_RECORDS_MAX

    def prepare(self, epoch: int) -> HttpEpoch | None:
        made, self._open = self._open, HttpEpoch(key="", values=[], timestamps=[])
        # Of an epoch that is ended once more, as its checkpoint was damaged, others may be the
        # records. Then the start is another one, too.
        made["key"] = str(uuid5(_KEYS, f"{self._task}, {self._start}, epoch {epoch}"))
        return made if made["values"] else None

    def commit(self, epoch: int, prepared: HttpEpoch | None) -> None:
        if prepared is not None:
            self._due[epoch] = prepared
            self._news.set()

    def close(self, *, completed: bool) -> None:
        self._closing.set()
        self._news.set()
        with suppress(AttributeError, OSError):  # There may be no connection.
            self._connection.sock.shutdown(SHUT_RDWR)  # type: ignore[union-attr]
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    @property
    def has_room(self) -> bool:
        return self.is_delivered

    @property
    def is_delivered(self) -> bool:
        return not (self._due or self.refused)

    @property
    def waits_for(self) -> str:
        return self._trouble

    # -- the thread that sends ---------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._news.clear()
                if not self._due:
                    self._news.wait()
                    continue
                epoch = min(self._due)
                self._send(self._due[epoch])
                if not self._closing.is_set():
                    del self._due[epoch]
                    self._wake()
        except BaseException as error:  # noqa: BLE001 - the task raises it
            self._failure = error
            self._wake()
        finally:
            self._disconnect()

    def _send(self, epoch: HttpEpoch) -> None:
        size, values, times = self._target.batch or 1, epoch["values"], epoch["timestamps"]
        for first in range(0, len(values), size):
            wanted = range(first, min(first + size, len(values)))
            refusal = self._deliver(epoch, wanted)
            for place in wanted if refusal else ():
                if len(wanted) > 1:
                    refusal = self._deliver(epoch, range(place, place + 1))
                if refusal:
                    error = OperatorError(
                        operator=self._target.operator,
                        cause=refusal,
                        record=shown(values[place]),
                        event_time_ms=times[place],
                    )
                    self.refused.append(RefusedRecord(values[place], times[place], error))
                    self._wake()

    def _deliver(self, epoch: HttpEpoch, wanted: range) -> str:
        """Send some records until they are taken; return why not, if they never will be."""
        texts = [json_of(epoch["values"][place]) for place in wanted]
        body = (texts[0] if self._target.batch is None else f"[{','.join(texts)}]").encode()
        # Other records are in a request of another size.
        key = str(uuid5(UUID(epoch["key"]), f"{wanted.start}-{wanted.stop}"))
        failures = 0
        while not self._closing.is_set():
            try:
                refusal = self._post(body, key)
            except _Later as error:
                failures += 1
                pause_ms = error.pause_ms or pause_after(
                    failures, _FIRST_MS, _LONGEST_MS, self._rng
                )
                self._trouble = f"{host_alone(self._target.url)}: {error}"
                level = logging.WARNING if failures == 1 else logging.INFO
                told = "%s tries again in %d ms: %s"
                _log.log(level, told, self._target.operator, pause_ms, error)
                self._wake()
                self._closing.wait(pause_ms / _MS_PER_S)
            else:
                self._trouble = ""
                return refusal
        return ""

    def _post(self, body: bytes, key: str) -> str:
        """Return why the records will never be taken; empty if they were."""
        while True:
            is_new = self._connection is None
            if self._connection is None:
                self._connection = self._target.connection()
            try:
                self._connection.request(
                    "POST", self._target.path, body, {**self._target.headers, _KEY: key}
                )
                answer = self._connection.getresponse()
                said = answer.read(_ANSWER_BYTES)
            except (OSError, HTTPException) as error:
                self._disconnect()
                # A server closes connections that nobody has used for a while.
                if is_new or not isinstance(error, ConnectionError):
                    raise _Later(str(error) or type(error).__name__) from error
            else:
                break
        if not answer.isclosed():
            self._disconnect()
        return _refusal(answer, said)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _refusal(answer: HTTPResponse, said: bytes) -> str:
    status = answer.status
    if status in _OK:
        return ""
    words = " ".join(said[:_SAID_BYTES].decode(errors="replace").split())
    text = f"answered {status} {answer.reason}" + (f": {words}" if words else "")
    if status in _LATER or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NEVER):
        raise _Later(text, _pause_ms(answer.headers.get("Retry-After", "")))
    if place := answer.headers.get("Location"):
        text += f"; it is at {host_alone(place)} now: write that address"
    return text


def _pause_ms(wanted: str) -> int:
    """Return the pause of a ``Retry-After``: seconds, or a date; 0 if it is none."""
    try:
        ms = int(wanted) * _MS_PER_S
    except ValueError:
        try:
            ms = int(parsedate_to_datetime(wanted).timestamp() * _MS_PER_S) - wall_ms()
        except (ValueError, TypeError, OverflowError):
            return 0
    return min(max(ms, 0), _ASKED_MAX_MS)
