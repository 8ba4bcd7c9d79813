"""Options in `.option(...)` of the format "gearpy". Their names know no case."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar, cast, get_args

from gearpy.core.base.times import duration_ms
from gearpy.core.handover.window_log import is_writer_name
from gearpy.errors import ConfigError
from gearpy.spark.source.planning import position_of

T = TypeVar("T")

Body = Literal["parquet", "arrow"]

#: The name of a reader without a name of its own.
READER: Final = "spark"
_SINKS: Final = "to_spark."  # Functions of `Stream.to_spark` have such names.

_EARLIEST: Final = "earliest"
_LATEST: Final = "latest"
_READ: Final = (
    "path",
    "startingPosition",
    "endingPosition",
    "windowsSince",
    "maxRowsPerTrigger",
    "maxBatchesPerTrigger",
    "failOnDataLoss",
    "purge",
    "reader",
    "numPartitions",
    "storageOptions",
)
_WRITE: Final = (
    "path",
    "writer",
    "body",
    "watermark",
    "outOfOrder",
    "txnAppId",
    "txnVersion",
    "storageOptions",
)
_READER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_MS_PER_S: Final = 1000
_TRUE: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReadOptions:
    """The options for reading a log.

    Attributes:
        starting: where to begin; None: at the oldest batch that is kept.
        ending: where to end; None: at the newest batch.
        windows_since_ms: rows of windows that begin earlier are left out.
        partitions: number of tasks of Spark; None: by the number of rows.
    """

    path: str
    starting: Mapping[str, int] | None = None
    from_end: bool = False
    ending: Mapping[str, int] | None = None
    windows_since_ms: int | None = None
    max_rows: int | None = None
    max_batches: int | None = None
    fail_on_data_loss: bool = True
    purge: bool = False
    reader: str = READER
    partitions: int | None = None
    storage_options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options for writing a log.

    Attributes:
        writer: the beginning of the name of the lane.
        watermark: column of times that, less ``out_of_order_ms``, no later row is older than.
        transaction: an application and its version; a write of one that is not newer is left out.
    """

    path: str
    writer: str = "spark"
    body: Body = "parquet"
    watermark: str | None = None
    out_of_order_ms: int = 0
    transaction: tuple[str, int] | None = None
    storage_options: Mapping[str, Any] | None = None


class _Given:
    """Options as texts; collects the mistakes in them."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._options = {name.lower(): text for name, text in options.items()}
        self.mistakes: list[str] = []

        names = {name.lower(): name for name in known}
        for name in sorted(self._options.keys() - names.keys()):
            if close := difflib.get_close_matches(name, names, n=1, cutoff=0.85):
                self.mistakes.append(f"option {name} is unknown: {names[close[0]]} is meant?")

    def get(self, name: str, parse: Callable[[str], T], default: T) -> T:
        text = self._options.get(name.lower())
        if text is None:
            return default
        try:
            return parse(text.strip())
        except (ValueError, ConfigError) as error:
            self.mistakes.append(f"option {name} is {text!r}: {error}")
            return default

    def path(self) -> str:
        path = self._options.get("path", "")
        if not path:
            self.mistakes.append('no path: call load("PATH") or save("PATH"), or start("PATH")')
        return path

    def check(self) -> None:
        if self.mistakes:
            raise ConfigError(*(f'format "gearpy": {mistake}' for mistake in self.mistakes))


def read_options(options: Mapping[str, str]) -> SourceReadOptions:
    given = _Given(options, _READ)
    starting = given.get("startingPosition", _starting, None)
    parsed = SourceReadOptions(
        path=given.path(),
        starting=starting if isinstance(starting, Mapping) else None,
        from_end=starting == _LATEST,
        ending=given.get("endingPosition", _ending, None),
        windows_since_ms=given.get("windowsSince", _time_ms, None),
        max_rows=given.get("maxRowsPerTrigger", _positive, None),
        max_batches=given.get("maxBatchesPerTrigger", _positive, None),
        fail_on_data_loss=given.get("failOnDataLoss", _flag, True),
        purge=given.get("purge", _flag, False),
        reader=given.get("reader", _reader_name, READER),
        partitions=given.get("numPartitions", _positive, None),
        storage_options=given.get("storageOptions", _object, None),
    )
    given.check()
    return parsed


def write_options(options: Mapping[str, str]) -> WriteOptions:
    given = _Given(options, _WRITE)
    application = given.get("txnAppId", _text, None)
    version = given.get("txnVersion", _whole, None)
    if (application is None) != (version is None):
        given.mistakes.append("options txnAppId and txnVersion only mean something together")
    both = application is not None and version is not None
    parsed = WriteOptions(
        path=given.path(),
        writer=given.get("writer", _name, "spark"),
        body=given.get("body", _body, "parquet"),
        watermark=given.get("watermark", _text, None),
        out_of_order_ms=given.get("outOfOrder", duration_ms, 0),
        transaction=(application or "", version or 0) if both else None,
        storage_options=given.get("storageOptions", _object, None),
    )
    given.check()
    return parsed


def _starting(text: str) -> Mapping[str, int] | str | None:
    if text.lower() == _EARLIEST:
        return None
    return _LATEST if text.lower() == _LATEST else _position(text)


def _ending(text: str) -> Mapping[str, int] | None:
    return None if text.lower() == _LATEST else _position(text)


def _position(text: str) -> dict[str, int]:
    try:
        return position_of(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(
            f'need "{_EARLIEST}", "{_LATEST}", or JSON such as {{"windows-00000": 12}}'
        ) from error


def _time_ms(text: str) -> int:
    """Return ms since the epoch; a time without a zone is taken as UTC."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("need ms since 1970, or a time such as 2026-03-01T10:00:00Z") from error
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * _MS_PER_S)


def _when(
    is_right: Callable[[str], object], need: str, make: Callable[[str], T]
) -> Callable[[str], T]:
    def parse(text: str) -> T:
        if not is_right(text):
            raise ValueError(need)
        return make(text)

    return parse


_whole = _when(re.compile(r"\d+").fullmatch, "need a whole number", int)
_positive = _when(
    lambda text: re.fullmatch(r"\d+", text) and int(text), "need a whole number, 1 or more", int
)
_flag = _when(
    lambda text: text.lower() in _TRUE, "need true or false", lambda text: _TRUE[text.lower()]
)
_name = _when(
    is_writer_name, "need letters, digits and underscores, a letter first, not too many", str
)
_text = _when(bool, "it is empty", str)
_body: Callable[[str], Body] = _when(
    lambda text: text in get_args(Body),
    "must be one of parquet, arrow",
    lambda text: cast("Body", text),
)


def _reader_name(text: str) -> str:
    if not _READER_NAME.fullmatch(text):
        raise ValueError("need letters, digits, and underscores, dots or dashes behind the first")
    if text.startswith(_SINKS):
        raise ValueError(f"names that begin with {_SINKS} are those of to_spark")
    return text


def _object(text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError) as error:
        raise ValueError('need a JSON object, as {"key": "value"}') from error
