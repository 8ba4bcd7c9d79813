"""Every exception of gearpy.

    GearpyError                     the base; catch this to catch all of ours
    ├── ConfigError                 wrong use, found when built or submitted; lists all mistakes
    │   ├── GraphError              the graph cannot run: cycle, duplicate edge, unknown processor
    │   ├── NoSuchStep              a stream has no such method; an AttributeError, too
    │   ├── NotInstalled            a package is missing; has the command that brings it
    │   └── CannotTravel            a value cannot be sent to another process, nor stored
    │       └── FrameTooLarge       it is larger than a frame between processes may be
    ├── SubmitRefused               the master said no, as the name is taken; nothing was started
    ├── ApplicationFailed           the application ended without success; carries its cause
    ├── ChangeFailed                a new version was given up; the one before goes on
    ├── OperatorError               user code raised; names operator, line, record, event time
    ├── ProtocolError               a peer spoke nonsense: bad frame, wrong version, over a limit
    │   └── AuthenticationFailed    a peer could not prove that it knows the cluster secret
    ├── ConnectionLost              a peer or the network went away
    │   └── NodeGivenUp             this process was frozen or cut off, and others count it as lost
    ├── MessageLost                 counts or sequence numbers of a link do not match
    ├── LogBroken                   a log could not be written; the last records may be in it
    │   └── LeadershipLost          another master may lead now; what was asked may have been done
    ├── LogAbsent                   a coordinator log is gone, as if its folder were not mounted
    ├── LogDamaged                  a log was changed by something else; names the place
    ├── LogSuperseded               a later launch has opened the coordinator log; we may not append
    ├── SnapshotDamaged             a snapshot of tasks is missing, or not what was stored
    ├── StoreAway                   a folder cannot be used at present; an OSError, too
    ├── WindowLogDamaged            a file of a window log is missing, or not what was written
    ├── WindowLogGap                a reader wants batches that a window log no longer has
    ├── ContractBroken              a source or sink does not keep a promise; an AssertionError, too
    ├── MailboxFull                 a bounded mailbox refused a message
    ├── ActorStopped                asked an actor that has stopped, or stopped before it answered
    └── AskTimeout                  no answer in time; the question may still be handled

Texts are lower case without a full stop and hold the values; fields hold them for programs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "ActorStopped",
    "ApplicationFailed",
    "AskTimeout",
    "AuthenticationFailed",
    "CannotTravel",
    "ChangeFailed",
    "ConfigError",
    "ConnectionLost",
    "ContractBroken",
    "FrameTooLarge",
    "GearpyError",
    "GraphError",
    "LeadershipLost",
    "LogAbsent",
    "LogBroken",
    "LogDamaged",
    "LogSuperseded",
    "MailboxFull",
    "MessageLost",
    "NoSuchStep",
    "NodeGivenUp",
    "NotInstalled",
    "OperatorError",
    "ProtocolError",
    "SnapshotDamaged",
    "StoreAway",
    "SubmitRefused",
    "WindowLogDamaged",
    "WindowLogGap",
    "causes_of",
    "ends_at_the_caller",
    "placed",
    "trouble_of",
]

P = ParamSpec("P")
T = TypeVar("T")


class GearpyError(Exception):
    """Base of every exception that gearpy raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        from IPython import get_ipython  # noqa: PLC0415 - who calls it has IPython

        shown: list[str] = get_ipython().InteractiveTB.structured_traceback(
            type(self), self, _up_to_gearpy(self.__traceback__)
        )
        return shown


class ConfigError(GearpyError):
    """Wrong use, found when something is built, loaded or submitted.

    ``mistakes`` holds one text for each mistake; all are reported together.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes: Sequence[str] = mistakes


class GraphError(ConfigError):
    """The graph cannot run: a cycle, a duplicate edge, an unknown processor."""


class NoSuchStep(ConfigError, AttributeError):
    """A stream has no method of this name, at least not here. The text names an alternative.

    `hasattr` and `getattr` with a default take it for the `AttributeError` that they expect.
    """


class NotInstalled(ConfigError):
    """A package is not installed. The text has the command that brings it.

    ``extra`` is the extra of gearpy that it belongs to; empty for a package of none.
    """

    def __init__(self, text: str, extra: str = "") -> None:
        super().__init__(text)
        self.extra = extra


class CannotTravel(ConfigError):
    """A value cannot be sent to another process, nor stored. Trying again would not help.

    ``reason`` says what it is and what to do; ``where`` is the place in what was to be sent.
    """

    def __init__(self, reason: str, where: str = "a value") -> None:
        super().__init__(f"{where} cannot be sent to another process or stored: {reason}")
        self.reason = reason
        self.where = where
        #: Messages of tasks that were not sent, the one with the value first.
        self.unsent: Sequence[Any] = ()


class FrameTooLarge(CannotTravel):
    """A message is larger than a frame between processes may be, in bytes."""

    def __init__(self, where: str, size: int, limit: int, cure: str) -> None:
        text = f"its frame of {size} bytes is over the limit of {limit}: {cure}"
        super().__init__(text, where)
        self.size = size
        self.limit = limit


class SubmitRefused(GearpyError):
    """The master refused an application; nothing was started."""


class ChangeForbidden(SubmitRefused):
    """The application belongs to another user, and the asker is no admin."""


class ApplicationFailed(GearpyError):
    """The application ended without success. ``cause`` is the text to show."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"application {name!r} failed: {cause}")
        self.name = name
        self.cause = cause


class ChangeFailed(GearpyError):
    """A new version was not put in place, or has failed in its trial; the one before goes on.

    ``version`` is its number, ``cause`` the text to show.
    """

    def __init__(self, name: str, version: int, cause: str) -> None:
        super().__init__(f"version {version} of {name!r} has failed: {cause}")
        self.name = name
        self.version = version
        self.cause = cause


class OperatorError(GearpyError):
    """User code raised an error. The fields are shown in an error card.

    ``source`` is ``file:line`` in the user's code, or empty where there is none (a builtin).
    ``event_time_ms`` is None where no single record is to blame. ``is_final``: it would be raised
    again, so that no restart would help. ``is_away``: a store is, and it helps to wait for it.
    """

    def __init__(
        self,
        *,
        operator: str,
        cause: str,
        source: str = "",
        source_line: str = "",
        record: str = "",
        event_time_ms: int | None = None,
        traceback: str = "",
        is_final: bool = False,
        is_away: bool = False,
    ) -> None:
        super().__init__(f"operator {operator!r}: {cause}")
        self.operator = operator
        self.cause = cause
        self.source = source
        self.source_line = source_line
        self.record = record
        self.event_time_ms = event_time_ms
        self.traceback = traceback
        self.is_final = is_final
        self.is_away = is_away
        if source:  # A traceback shows notes; it ends where the application was run.
            self.add_note(placed(source, source_line))
        if record:
            self.add_note(f"  record  {record}")


def placed(source: str, line: str) -> str:
    """Return a place in user code as the note that people see below an error."""
    return f"  at      {source}\n            {line}".rstrip()


class ProtocolError(GearpyError):
    """A peer spoke nonsense: a malformed frame, a wrong version, a size over a limit."""


class AuthenticationFailed(ProtocolError):
    """A peer could not prove that it knows the cluster secret."""


class ConnectionLost(GearpyError):
    """A peer or the network went away."""


class NodeGivenUp(ConnectionLost):
    """This process was frozen or cut off for so long that others count it as lost.

    Its further work does not count: it has to end, or begin anew.
    """


class MessageLost(GearpyError):
    """Counts or sequence numbers of a link do not match. Gearpump: `MsgLostException`."""


class LogBroken(GearpyError):
    """A log could not be written. Its last records may or may not be there."""


class LeadershipLost(LogBroken):
    """This master does not lead any more. What it was asked last may or may not have been done."""


class LogAbsent(GearpyError):
    """A coordinator log is not where it was written, or is there as it was long ago.

    That is what a folder looks like that is not mounted.
    """

    def __init__(self, *, log: str, launch: int, found: int, place: str = "") -> None:
        there = f"only one of launch {found} is there" if found else "nothing is there"
        folder = f"checkpoint folder {place}" if place else "checkpoint folder"
        super().__init__(
            f"coordinator log {log} was written by launch {launch}, and {there}: is the {folder} "
            "mounted, and the same as before? Mount it or bring its files back, and it goes on; "
            "to begin from the beginning, submit the application anew"
        )
        self.log = log
        self.launch = launch
        self.found = found

    def at(self, place: str) -> "LogAbsent":
        """Return the same with the folder or URL in which the log should be."""
        return LogAbsent(log=self.log, launch=self.launch, found=self.found, place=place)


class LogDamaged(GearpyError):
    """A file of a log is not as the log left it. Nothing of it was loaded.

    ``fix`` says what a person can do.
    """

    def __init__(
        self,
        *,
        file: str,
        offset: int,
        reason: str,
        fix: str = "restore its folder from a copy, or move it away to begin without it",
    ) -> None:
        super().__init__(f"{file} is damaged at byte {offset}: {reason}; {fix}")
        self.file = file
        self.offset = offset
        self.reason = reason
        self.fix = fix


class LogSuperseded(GearpyError):
    """A later launch of the application has opened its coordinator log.

    This launch may not append any more; its work does not count. ``newer`` names its successor.
    """

    def __init__(self, *, log: str, opening: str, newer: str) -> None:
        super().__init__(
            f"coordinator log {log}: {opening} is superseded by {newer} and may append no more"
        )
        self.log = log
        self.opening = opening
        self.newer = newer


class SnapshotDamaged(GearpyError):
    """A snapshot of tasks is missing, or differs from the stored one. An older one may do."""

    def __init__(self, *, location: str, reason: str) -> None:
        super().__init__(f"snapshot {location}: {reason}")
        self.location = location
        self.reason = reason


class StoreAway(GearpyError, OSError):
    """A folder that is in use cannot be used at present: it is moved, not mounted, full, read-only.

    What needs it waits until it is back. Nothing is lost, and nothing is made anew meanwhile.
    """


class WindowLogDamaged(GearpyError):
    """A file of a window log is missing, or differs from the written one."""

    def __init__(self, *, file: str, reason: str) -> None:
        super().__init__(f"window log file {file}: {reason}")
        self.file = file
        self.reason = reason


class WindowLogGap(GearpyError):
    """A reader wants batches that a window log no longer has: purged, or past their retention.

    ``kept`` is the first batch at or behind the wanted one that is there.
    """

    def __init__(self, *, lane: str, wanted: int, kept: int) -> None:
        super().__init__(
            f"window log: lane {lane} has no batch {wanted} any more, the next one kept is {kept}: "
            "pass over what is gone (failOnDataLoss=false), or begin with a new reader"
        )
        self.lane = lane
        self.wanted = wanted
        self.kept = kept


class ContractBroken(GearpyError, AssertionError):
    """A source or sink does not keep a promise, as `gearpy.testing` has found out."""


class MailboxFull(GearpyError):
    """A bounded mailbox refused a message."""


class ActorStopped(GearpyError):
    """The actor has stopped, or stopped before it answered."""


class AskTimeout(GearpyError):
    """No answer in time; the question may still be handled."""


def trouble_of(error: BaseException) -> str:
    """Return why a store cannot be used, for people: with the folder, and no temporary file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    folder = str(error.filename or "").rpartition("/")[0]
    return error.strerror if folder in error.strerror else f"{error.strerror}: {folder}"


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it was made of, each once: some are raised from themselves."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def ends_at_the_caller(function: Callable[P, T]) -> Callable[P, T]:
    """Leave gearpy's own frames out of the traceback of an error that is not gearpy's bug.

    A notebook shows each frame with its source, which hides the few lines that tell something.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True  # This frame, for IPython and pytest.
        try:
            return function(*args, **kwargs)
        except (GearpyError, KeyboardInterrupt) as error:
            raise error.with_traceback(None) from error.__cause__

    return call


def _up_to_gearpy(traceback: TracebackType | None) -> TracebackType | None:
    """Cut a traceback before the first frame that is to be hidden."""
    at = traceback
    while at is not None and at.tb_next is not None:
        if "__tracebackhide__" in at.tb_next.tb_frame.f_locals:
            at.tb_next = None
        at = at.tb_next
    return traceback
