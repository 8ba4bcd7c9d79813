"""The changes that clients ask an app master for, while their programs are being loaded."""

import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeAlias

from gearpy.cluster.programs.outline import LoadedProgram, LoadProgram
from gearpy.errors import GearpyError, OperatorError
from gearpy.ids import AppId
from gearpy.messages.client import (
    Artifact,
    ProgramLoading,
    Refused,
    UpdateApplication,
    UpdatePlanned,
)

#: A program as it was loaded, or why it could not be.
Loaded: TypeAlias = LoadedProgram | GearpyError
ChangeAnswer: TypeAlias = UpdatePlanned | Refused
#: Has a function called in a turn of an actor; called by any thread.
InTurn: TypeAlias = Callable[[Callable[[], None]], None]

_AT_ONCE_MAX: Final = 4
_ANSWERS_MAX: Final = 64


class AskedChanges:
    """Has programs of changes loaded, several at a time, while the application goes on.

    Who asks again with the same key gets what became of it, for as long as it is kept.
    """

    def __init__(
        self, app_id: AppId, load: LoadProgram, now_ms: Callable[[], int], in_turn: InTurn | None
    ) -> None:
        self._app_id = app_id
        self._load = load
        self._in_turn = in_turn
        self._now_ms = now_ms
        self._loading: dict[Hashable, int] = {}  # When it began.
        self._answers: dict[Hashable, ChangeAnswer] = {}

    def answer_to(self, message: UpdateApplication) -> ChangeAnswer | ProgramLoading | None:
        key = message.key or message
        if key not in self._loading:
            # Without a key the next one may be another change.
            return self._answers.get(key) if message.key else self._answers.pop(key, None)
        if message.key:
            lasts_ms = self._now_ms() - self._loading[key]
            return ProgramLoading(app_id=self._app_id, lasts_ms=lasts_ms)
        return Refused(  # A client of the version before knows no other answer.
            reason=f"the program is being loaded for application {self._app_id}: ask for the same "
            "once more in a moment, to know how it ends"
        )

    def load(
        self,
        message: UpdateApplication,
        artifact: Artifact,
        compared: Artifact | None,
        decide: Callable[[Loaded], ChangeAnswer],
    ) -> ChangeAnswer | ProgramLoading:
        if len(self._loading) >= _AT_ONCE_MAX:
            return Refused(
                reason=f"{_AT_ONCE_MAX} programs are being loaded for application {self._app_id} "
                "at this moment: ask again when one of them is done"
            )
        key = message.key or message
        self._loading[key] = self._now_ms()

        def done(loaded: Loaded) -> None:
            del self._loading[key]
            self._answers[key] = decide(loaded)
            for oldest in [*self._answers][:-_ANSWERS_MAX]:
                del self._answers[oldest]

        if (in_turn := self._in_turn) is None:
            done(self._loaded(artifact, compared))
        else:
            threading.Thread(
                target=lambda: in_turn(partial(done, self._loaded(artifact, compared))),
                name="gearpy-load",
                daemon=True,
            ).start()
        answer = self.answer_to(message)
        assert answer is not None, "it is being loaded, or is"
        return answer

    def _loaded(self, artifact: Artifact, compared: Artifact | None) -> Loaded:
        try:
            return self._load(artifact, compared)
        except OperatorError as error:
            at = f", at {error.source}: {error.source_line}" if error.source else ""
            return GearpyError(f"{error}{at}")
        except GearpyError as error:
            return error
        except OSError as error:
            return GearpyError(f"the program cannot be loaded: {error}")
