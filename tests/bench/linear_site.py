"""What a master of `linear` does in its own process: it takes other ways, and may have a bug.

`environment` returns what makes a master do so. The bugs are planted from outside: the product has
no switch for them.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from gearpy.cluster.master.store import MasterFold
from gearpy.cluster.quorum.gateway import MemberGateway
from gearpy.core.consensus.actions import Transmit
from gearpy.core.consensus.leadership import Leadership
from gearpy.messages.client import ApplicationList, ListApplications
from gearpy.transport.api import split_address
from gearpy.transport.connection import redial

#: Mistakes of masters that a checker must see.
Bug: TypeAlias = Literal["followers answer", "leaders answer early", "leaders lead for ever"]
BUGS: Final[tuple[Bug, ...]] = get_args(Bug)
_WAYS: Final = "LINEAR_WAYS"
_BUG: Final = "LINEAR_BUG"
_ROOT: Final = Path(__file__).parents[2]
_SITE: Final = """\
import sys

sys.path.insert(0, {root!r})
from tests.bench.linear_site import install

install()
"""


def environment(folder: Path, ways: Mapping[str, str], bug: Bug | None) -> dict[str, str]:
    """Return what a master must find in its environment.

    Args:
        ways: the addresses at which it reaches the others, by those that they are called.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE.format(root=str(_ROOT)), encoding="utf-8")
    return {"PYTHONPATH": str(folder), _WAYS: json.dumps(dict(ways)), _BUG: bug or ""}


def install(environ: Mapping[str, str] = os.environ) -> None:
    ways: dict[str, str] = json.loads(environ[_WAYS])

    def split_way(address: str) -> tuple[str, int]:
        return split_address(ways.get(address, address))

    setattr(redial, "split_address", split_way)  # noqa: B010 - mypy refuses the other
    if bug := environ[_BUG]:
        _PLANTED[bug]()


def _let_followers_answer() -> None:
    """Each master lists applications by its own state, without asking anybody."""
    folds, begin, answer = list[MasterFold](), MasterFold.__init__, MemberGateway.answer

    def noted(self: MasterFold) -> None:
        begin(self)
        folds.append(self)

    def answer_at_once(self: MemberGateway, message: object, *args: Any) -> object:
        if isinstance(message, ListApplications):
            return ApplicationList(applications=folds[-1].state.summaries())
        return answer(self, message, *args)

    setattr(MasterFold, "__init__", noted)  # noqa: B010 - the same
    setattr(MemberGateway, "answer", answer_at_once)  # noqa: B010 - the same


def _let_leaders_answer_early() -> None:
    advance = Leadership.advance

    def hasty(self: Any) -> Iterator[Transmit]:
        index = self._log.durable_index
        if index > self.commit_index and self._log.term_at(index) == self._log.term:
            self.commit_index = index
        return advance(self)

    setattr(Leadership, "advance", hasty)  # noqa: B010 - the same


def _let_leaders_lead_for_ever() -> None:
    """A leader that hears nobody goes on, and answers from what it has."""
    setattr(Leadership, "_confirmed_now", lambda self: self._round + 1)  # noqa: B010 - the same
    setattr(Leadership, "has_majority", lambda *_: True)  # noqa: B010 - the same


_PLANTED: Final[Mapping[str, Callable[[], None]]] = {
    "followers answer": _let_followers_answer,
    "leaders answer early": _let_leaders_answer_early,
    "leaders lead for ever": _let_leaders_lead_for_ever,
}
