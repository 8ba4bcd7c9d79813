"""Clients that submit, kill and list applications at masters of their choice, and note all of it.

A name of an application is a lock: of several that are submitted under it, one lives, and the
others are refused until it is killed. So each answer says much about what was before.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Final, Self

from gearpy.cluster.net.limits import transport_limits
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import (
    Accepted,
    ApplicationList,
    Artifact,
    Asker,
    ClusterSummary,
    GetCluster,
    ListApplications,
    NotLeader,
    Refused,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
)
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.secret import load_or_create_secret
from tests.bench.linear_history import History, Operation, listed
from tests.bench.process_cluster import ProcessCluster

_CHANGERS: Final = 4
_NAMES: Final = 3  # At a time: few, so that clients meet.
_PAUSE_S: Final = 0.15
_ASK_S: Final = 1.0
#: A witness waits for an answer longer than any fault lasts: it may be from before.
_WITNESS_S: Final = 8.0
_LAST_S: Final = 20.0
_WITNESS_PAUSE_S: Final = 0.5
_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.02
#: Such an application waits for ever.
_WAITS: Final = {"application.hosts": "nowhere"}
_PROGRAM: Final = Artifact(kind="file", location="/nowhere.py")


class Clients:
    """Clients on threads of their own. Use as a context manager.

    Some change things at whichever master they draw; for each master there is a witness that keeps
    one connection, and lists now and then.
    """

    def __init__(self, cluster: ProcessCluster, history: History, *, seed: int) -> None:
        self._cluster, self._history, self._seed = cluster, history, seed
        self._secret = load_or_create_secret(cluster.config.transport.secret_file)
        self._numbers = count(1)
        self._names: list[str] = []
        self._known: dict[str, tuple[str, AppId]] = {}  # The newest of a name, with its token.
        self._leader = ""  # By the last word of anybody.
        self._is_over = threading.Event()
        #: A master that nobody asks for changes: one that waits for others cannot answer.
        self.avoided = ""
        self.problem = ""
        self.turn()
        self._threads = [self._thread(self._change, number) for number in range(_CHANGERS)]
        self._threads += [
            self._thread(self._witness, _CHANGERS + number, address)
            for number, address in enumerate(cluster.addresses)
        ]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    @property
    def names(self) -> Sequence[str]:
        return self._names

    def turn(self) -> None:
        """Use other names from now on: what nobody knows of the old ones is soon left behind."""
        first = len(self._names)
        self._names += [f"name{number}" for number in range(first, first + _NAMES)]

    def wait_accepted(self) -> None:
        begin, until_s = time.monotonic_ns(), time.monotonic() + _WITHIN_S
        while not self._history.has_accepted_since(begin):
            if time.monotonic() > until_s:
                raise TimeoutError("nothing is accepted any more, although all masters are there")
            time.sleep(_POLL_S)

    def list_all(self) -> None:
        until_s = time.monotonic() + _WITHIN_S
        with self._connected(self._cluster.addresses) as masters:
            while time.monotonic() < until_s:
                for master in masters.values():
                    if self._list(master, -1, self._names, _LAST_S):
                        return
                time.sleep(_POLL_S)
        raise TimeoutError("nobody lists applications, although all masters are there")

    # -- on threads of their own -----------------------------------------------------------

    def _thread(self, work: Callable[..., None], number: int, *args: str) -> threading.Thread:
        rng = random.Random(f"{self._seed} {number}")
        return threading.Thread(target=work, args=(number, rng, *args))

    def _change(self, number: int, rng: random.Random) -> None:
        lost: list[tuple[str, str]] = []  # Submissions whose answer did not come.
        with self._connected(self._cluster.addresses) as masters:
            while not self._is_over.wait(rng.uniform(0, _PAUSE_S)):
                address = self._leader if rng.random() < 0.5 else ""
                address = address or rng.choice([*masters])
                master, names = masters[address], self._names[-_NAMES:]
                draw, name = rng.random(), rng.choice(names)
                if draw < 0.3:  # Of whoever answers.
                    self._list(master, number, [*names, rng.choice(self._names)], _ASK_S)
                elif address == self.avoided or not self._leads(master):
                    continue
                elif draw < 0.4 and lost and lost[-1][0] in names:
                    self._submit(master, number, *lost.pop())
                elif draw < 0.75:
                    token = f"t{next(self._numbers)}"
                    if self._submit(master, number, name, token) is None:
                        lost.append((name, token))
                else:
                    self._kill(master, number, name)

    def _witness(self, number: int, rng: random.Random, address: str) -> None:
        with self._connected([address]) as masters:
            while not self._is_over.wait(rng.uniform(0.1, _WITNESS_PAUSE_S)):
                self._list(masters[address], number, self._names[-_NAMES:], _WITNESS_S)

    # -- operations ------------------------------------------------------------------------

    def _submit(self, master: ControlClient, number: int, name: str, token: str) -> str | None:
        """Submit something that can be told from others; return the result, None if unknown."""
        message = SubmitApplication(
            name=name, artifact=_PROGRAM, config=_WAITS, user=token, key=token
        )
        with self._history.asking(number, name, "submit", token) as call:
            match self._ask(master, message, _ASK_S):
                case Submitted(app_id=app_id):
                    call.result, self._known[name] = "ok", (token, app_id)
                case Refused(reason=reason):
                    call.result = "refused"
                    if "is already" not in reason:
                        self.problem = self.problem or f"{name} was refused: {reason}"
                case NotLeader():
                    call.was_asked = False
        return call.result

    def _kill(self, master: ControlClient, number: int, name: str) -> None:
        if name not in self._known:
            return
        token, app_id = self._known[name]
        message = ShutdownApplication(app_id=app_id, by=Asker(user=token))
        with self._history.asking(number, name, "kill", token) as call:
            match self._ask(master, message, _ASK_S):
                case Accepted():
                    call.result = "ok"
                case Refused(reason=reason):
                    call.result = "refused"
                    if "is already" not in reason:
                        self.problem = self.problem or f"the end of {name} was refused: {reason}"
                case NotLeader():
                    call.was_asked = False

    def _list(
        self, master: ControlClient, number: int, names: Sequence[str], timeout_s: float
    ) -> bool:
        begin = time.monotonic_ns()
        found = self._ask(master, ListApplications(), timeout_s)
        if not isinstance(found, ApplicationList):
            return False
        end = time.monotonic_ns()
        living, ended = dict[str, str](), dict[str, list[str]]()
        for each in found.applications:
            if each.status in TERMINAL:
                ended.setdefault(each.name, []).append(each.user)
            else:
                living[each.name] = each.user
                self._known[each.name] = (each.user, each.app_id)
        self._history.add(
            [
                Operation(
                    number,
                    name,
                    "list",
                    "",
                    listed(living.get(name, ""), ended.get(name, [])),
                    begin,
                    end,
                )
                for name in dict.fromkeys(names)
            ]
        )
        return True

    # -- connections -----------------------------------------------------------------------

    @contextmanager
    def _connected(self, addresses: Sequence[str]) -> Iterator[dict[str, ControlClient]]:
        limits = transport_limits(self._cluster.config)
        with ExitStack() as stack:
            yield {
                each: stack.enter_context(ControlClient(each, self._secret, limits))
                for each in addresses
            }

    def _leads(self, master: ControlClient) -> bool:
        """Find out whether a master leads before it is asked for more, unless it did just now.

        So what is not answered was asked of one that did: else few operations would be certain.
        """
        if master.is_connected and self._leader == master.address:
            return True
        return isinstance(self._ask(master, GetCluster(), _ASK_S), ClusterSummary)

    def _ask(self, master: ControlClient, message: Any, timeout_s: float) -> object:
        try:
            answer = master.ask(message, timeout_s)
        except GearpyError:
            self._leader = ""
            return None
        if isinstance(answer, NotLeader):
            self._leader = answer.leader
        else:
            self._leader = master.address
        return answer
