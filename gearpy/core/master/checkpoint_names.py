"""Names in a checkpoint store, below which the applications of a cluster keep their files.

Several clusters may share a store: each has an id of its own, and numbers its applications.
"""

import re
import string
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from gearpy.errors import ConfigError
from gearpy.ids import AppId

if TYPE_CHECKING:
    from random import Random

#: 36 ** 8 ids: a thousand clusters on one store meet with a chance of one in five million.
CLUSTER_ID_CHARS: Final = 8

#: These may stand at the end of a `ResumePoint`.
ALLOW_DROP: Final = "+allow-drop"
RESTART: Final = "+restart"
#: Under this key a master stores for an application which launch was the newest to open its
#: coordinator log. A store without that log is not the one that the application has written to.
OPENED_KEY: Final = "opened"

#: Under this key a master stores the program of an application that was changed while it ran, as
#: JSON of an `Artifact`; one that is started again begins with it.
PROGRAM_KEY: Final = "program"

#: This one has the files of all its versions, as JSON: it may go back to each.
PROGRAMS_KEY: Final = "programs"

_ALPHABET: Final = string.ascii_lowercase + string.digits
_SHOWN_CHARS_MAX: Final = 100
_TEXT: Final = re.compile(
    rf"([a-z0-9]{{{CLUSTER_ID_CHARS}}})/app([1-9][0-9]{{0,17}})@(?:([1-9][0-9]{{0,17}})|([A-Za-z][A-Za-z0-9._-]{{0,62}}))?(\+allow-drop|\+restart)?",
    re.ASCII,
)


def new_cluster_id(rng: "Random") -> str:
    return "".join(rng.choices(_ALPHABET, k=CLUSTER_ID_CHARS))


def prefix_of(cluster_id: str, app_id: AppId) -> str:
    return f"{cluster_id}/app{app_id}"


class ResumePoint(Struct, frozen=True, kw_only=True):
    """The epoch of another application to begin with, by number or savepoint; or the newest.

    With ``allows_drop`` it may leave state behind. With ``is_restart`` it is the same application
    again, which begins from the beginning if there is no epoch yet. The other one may be of another
    cluster.

    Invariant: `parse` of `str` gives the same.
    """

    cluster_id: str
    app_id: AppId
    epoch: int | None = None
    savepoint: str = ""
    allows_drop: bool = False
    is_restart: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``cluster/appN@EPOCH`` or ``cluster/appN@SAVEPOINT``.

        ``@`` alone means the newest epoch; ``+allow-drop`` or ``+restart`` may stand at the end.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ConfigError(
                f"{text[:_SHOWN_CHARS_MAX]!r} is no place to resume from: name a cluster, an "
                "application and an epoch, as in k3f9a1c2/app3@7, or k3f9a1c2/app3@ for its newest"
            )
        cluster_id, app_id, epoch, savepoint, how = found.groups()
        return cls(
            cluster_id=cluster_id,
            app_id=AppId(int(app_id)),
            epoch=int(epoch) if epoch else None,
            savepoint=savepoint or "",
            allows_drop=how == ALLOW_DROP,
            is_restart=how == RESTART,
        )

    @property
    def prefix(self) -> str:
        return prefix_of(self.cluster_id, self.app_id)

    def __str__(self) -> str:
        how = ALLOW_DROP if self.allows_drop else RESTART if self.is_restart else ""
        return f"{self.prefix}@{self.savepoint or self.epoch or ''}{how}"
