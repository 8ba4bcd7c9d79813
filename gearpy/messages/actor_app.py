"""Applications of actors: what their app master, executors and clients say to each other."""

from msgspec import Struct

from gearpy.ids import AppId, ExecutorId
from gearpy.messages.question import Question


class ActorLetter(Struct, frozen=True, kw_only=True):
    """A message of user code between an app master and an executor; ``body`` is its payload.

    ``executor_id`` and ``launch`` are those of the executor, whichever actor sends it.
    """

    executor_id: ExecutorId
    launch: int
    body: bytes


class AskAppMaster(Question["AppMasterAnswer"], frozen=True, kw_only=True):
    """A question of user code to an app master. Answer: `AppMasterAnswer` or `Refused`.

    With a ``number`` it asks again for an answer that was pending; the question is then not read.
    """

    app_id: AppId
    question: bytes = b""
    number: int = 0


class AppMasterAnswer(Struct, frozen=True, kw_only=True):
    """The answer's payload; with a ``number`` it is not known yet: ask for that number."""

    app_id: AppId
    answer: bytes = b""
    number: int = 0
