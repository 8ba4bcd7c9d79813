"""The answers of an app master to clients, while it runs and after its end."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final, TypeAlias

from gearpy.cluster.app.checkpoints import AppCheckpoints
from gearpy.cluster.app.connections import MasterLink
from gearpy.cluster.app.describe import epochs_of
from gearpy.cluster.app.status import AppStatus
from gearpy.cluster.app.versions import AppVersions
from gearpy.core.app.application import ApplicationCore
from gearpy.messages.client import EpochList, GetEpochs, GetPlan, GetVersions, PlanText, VersionList
from gearpy.messages.cluster import LastAnswer, LaunchExecutor
from gearpy.wire.codec import encode_control

#: What is shown of an application as it is, and of which nothing changes.
Shown: TypeAlias = GetPlan | GetVersions | GetEpochs
#: Of one answer that is left behind: it must fit into a control frame.
_LEFT_BYTES_MAX: Final = 900 * 1024
#: Answers are left as often as that while they are small; of large ones so many bytes each ms.
_EVERY_MS: Final = 10_000
_BYTES_PER_MS: Final = 32
_FIRST_MS: Final = 2_000
#: A launch after the first one knows less at first than the one before has left.
_FIRST_OF_OTHERS_MS: Final = 30_000


class AppQueries:
    """Answers clients; leaves the master answers for the time when this process is gone.

    It does so at the end, and every now and then before: a process that is killed leaves what it
    has left before.
    """

    def __init__(
        self,
        launch: LaunchExecutor,
        master: MasterLink,
        *,
        status: AppStatus,
        versions: AppVersions,
        checkpoints: AppCheckpoints,
    ) -> None:
        self._app_id = launch.app_id
        self._launch = launch.launch
        self._master = master
        self._status = status
        self._versions = versions
        self._checkpoints = checkpoints
        self._has_left = False
        self._due_ms: int | None = None

    def shown(self, core: ApplicationCore, message: Shown) -> PlanText | VersionList | EpochList:
        match message:
            case GetPlan():
                return PlanText(app_id=self._app_id, text=self._status.plan)
            case GetVersions():
                return VersionList(app_id=self._app_id, versions=self._versions.summaries())
            case GetEpochs():
                ended = core.end_epochs(dict(message.until)) if message.ends_one else []
                regions = ended if message.ends_one else core.regions
                return EpochList(
                    app_id=self._app_id,
                    epochs=epochs_of(regions, self._checkpoints.stored_ms),
                    place=self._checkpoints.place,
                    prefix=self._checkpoints.prefix,
                    next_to_end=tuple((each.number, each.epochs.next_to_end) for each in ended),
                )

    def is_due(self, now_ms: int) -> bool:
        """Tell whether it is time to leave answers before the end; asked while all tasks run."""
        if self._due_ms is None:
            self._due_ms = now_ms + (_FIRST_MS if self._launch == 1 else _FIRST_OF_OTHERS_MS)
        return now_ms >= self._due_ms

    def leave(
        self,
        core: ApplicationCore,
        measured: Iterable[tuple[str, Any]],
        now_ms: int,
        *,
        is_last: bool,
    ) -> None:
        """Give the master the answers for clients once this process is gone; the last ones once.

        The larger the answers are, the longer is the pause until `is_due`.
        """
        if self._has_left or not self._master.is_there:
            return
        self._has_left = is_last
        questions = (GetPlan, GetEpochs, GetVersions)
        answers: list[Any] = [self.shown(core, each(app_id=self._app_id)) for each in questions]
        answers.append(self._status.detail(core))
        told = 0
        for part, answer in chain((("", each) for each in answers), measured):
            encoded = encode_control(answer)
            if len(encoded) > _LEFT_BYTES_MAX:
                continue
            told += len(encoded)
            left = LastAnswer(
                app_id=self._app_id,
                launch=self._launch,
                kind=type(answer).__name__,
                answer=encoded,
                part=part,
                is_last=is_last,
            )
            self._master.tell(left)
        self._due_ms = now_ms + max(_EVERY_MS, told // _BYTES_PER_MS)
