"""`--processes N`: one process collects all tests; N forks of it run them, a group at a time.

With pytest-xdist each process imports and collects all tests for itself. What is reported is the
same: the process that collects reports what the others tell. A test during which its process ends
has failed, and another process goes on with the rest of its group.

A fork has no threads of the process before it. So all fixtures are made after the fork, as with
pytest-xdist, and tests are told the number of their process in the same way.
"""

import atexit
import os
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from types import SimpleNamespace
from typing import Any, Final, NoReturn
from warnings import WarningMessage

import pytest
from _pytest.runner import pytest_sessionfinish as tear_down
from _pytest.tmpdir import TempPathFactory

# Ships no type information.
from xdist import is_xdist_controller, is_xdist_worker  # type: ignore[import-untyped]
from xdist.remote import serialize_warning_message  # type: ignore[import-untyped]
from xdist.workermanage import unserialize_warning_message  # type: ignore[import-untyped]

from tests.groups import group

_STOP_S: Final = 10.0  # Fixtures of a test that is interrupted end clusters.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes", type=int, default=0, metavar="N", help="run tests in N forks; -n goes first"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in forks, if that is asked for and nothing stands against it."""
    option = session.config.option
    is_elsewhere = is_xdist_worker(session) or is_xdist_controller(session)
    if not option.processes or is_elsewhere or option.usepdb or option.collectonly:
        return None
    if session.testsfailed and not option.continue_on_collection_errors:
        return None  # pytest says so.
    with _ended(_Pool(session)) as pool:
        pool.run(option.processes)
    return True


@dataclass(eq=False)
class _Child:
    pid: int
    name: str
    end: Connection
    #: What it has still to run, as places among all tests; it runs the first of them.
    given: deque[int] = field(default_factory=deque)
    #: The last test that it has begun.
    begun: int | None = None

    def __post_init__(self) -> None:
        self.life = os.pidfd_open(self.pid)  # Readable when it has ended.
        # As a node of pytest-xdist, which marks each report; pytest knows both.
        self.gateway = SimpleNamespace(id=self.name)
        self._workerinfocache = f"[{self.name}]"

    def close(self) -> None:
        self.end.close()
        os.close(self.life)


class _Pool:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        self._groups = deque(self._by_group(range(len(session.items))))
        self._forks = 0
        self.children: list[_Child] = []

    def run(self, count: int) -> None:
        # Each has a folder in this one, which is to be known to all of them.
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
        for _ in range(min(count, len(self._groups))):
            self._fork()
        while self.children:
            ready = wait([each for child in self.children for each in (child.end, child.life)])
            for child in list(self.children):
                if child.life in ready:
                    self._bury(child)
                elif child.end in ready:
                    self._hear(child)
                self._stop_if_asked()

    def _fork(self) -> None:
        end, other_end = Pipe()
        name = f"gw{self._forks}"
        self._forks += 1
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            # Else nobody would see that the process of another end is gone.
            for sibling in self.children:
                sibling.close()
            end.close()
            _live(self._session, other_end, name)
        other_end.close()
        self.children.append(_Child(pid, name, end))

    def _hear(self, child: _Child) -> None:
        with suppress(EOFError, ConnectionError):  # It ends, and will be buried.
            while child.end.poll():
                name, *args = child.end.recv()
                getattr(self, f"_on_{name}")(child, *args)

    def _on_more(self, child: _Child) -> None:
        tests = self._groups.popleft() if self._groups else []
        child.given.extend(tests)
        child.end.send(tests)

    def _on_begin(self, child: _Child) -> None:
        child.begun = child.given[0]
        item = self._session.items[child.begun]
        self._hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

    def _on_report(self, child: _Child, data: dict[str, Any]) -> None:
        config = self._session.config
        report = self._hook.pytest_report_from_serializable(config=config, data=data)
        report.node = child
        self._hook.pytest_runtest_logreport(report=report)

    def _on_finish(self, child: _Child) -> None:
        item = self._session.items[child.given.popleft()]
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _on_warning(self, _: _Child, message: dict[str, Any], place: dict[str, Any]) -> None:
        warning = unserialize_warning_message(message)
        said = {"warning_message": warning, **place}
        self._hook.pytest_warning_recorded.call_historic(kwargs=said)

    def _on_stop(self, _: _Child, why: str) -> None:
        self._session.shouldstop = why

    def _bury(self, child: _Child) -> None:
        """Report what it has told last, and how it ended if that was too early."""
        self._hear(child)
        self.children.remove(child)
        child.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        is_over = self._session.shouldfail or self._session.shouldstop
        if is_over or (not code and not child.given):
            return
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if child.begun is None:
            raise RuntimeError(f"process {child.name} ended by {how} before its first test")
        self._blame(child, how)
        if child.given and child.given[0] == child.begun:
            child.given.popleft()
        self._groups.extendleft(reversed(self._by_group(child.given)))
        if self._groups:
            self._fork()

    def _blame(self, child: _Child, how: str) -> None:
        assert child.begun is not None
        item = self._session.items[child.begun]
        when = "it ran" if child.begun in child.given else "it had run"
        report = pytest.TestReport(
            item.nodeid,
            item.location,
            keywords={},
            outcome="failed",
            longrepr=f"process {child.name} ended by {how} when {when} {item.nodeid}",
            when="???",  # type: ignore[arg-type] # As pytest-xdist calls it: it has failed.
            node=child,
        )
        self._hook.pytest_runtest_logreport(report=report)

    def _by_group(self, places: Iterable[int]) -> list[list[int]]:
        groups: dict[str, list[int]] = {}
        for place in places:
            groups.setdefault(group(self._session.items[place].nodeid), []).append(place)
        return list(groups.values())

    def _stop_if_asked(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


@contextmanager
def _ended(pool: _Pool) -> Iterator[_Pool]:
    try:
        yield pool
    except KeyboardInterrupt:
        raise  # Ctrl-C has reached them, too: a second one would end what they tear down.
    except BaseException:
        for child in pool.children:
            os.kill(child.pid, signal.SIGINT)
        raise
    finally:
        for child in pool.children:
            child.end.close()  # Whoever does not know yet sees it when it tells something.
            if not wait([child.life], _STOP_S):
                os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            os.close(child.life)


# -- in a fork ------------------------------------------------------------------------------------


def _live(session: pytest.Session, end: Connection, name: str) -> NoReturn:
    """Run tests as long as there are some; end without what the process before has to end."""
    code = 1
    try:
        _settle(session.config, name)
        teller = _Teller(session.config, end)
        session.config.pluginmanager.register(teller)
        teller.is_ready = True
        try:
            _run(session, end)
            code = 0
        except pytest.exit.Exception as stop:
            end.send(("stop", stop.msg))
            code = 0
        finally:
            tear_down(session)
    except (KeyboardInterrupt, EOFError, ConnectionError):
        code = 0  # The run is over.
    except BaseException:  # noqa: BLE001 - its code tells it.
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _settle(config: pytest.Config, name: str) -> None:
    """Take what belongs to one process: folders, what tests print, a screen for nobody."""
    # A run in the background of a shell has it ignored, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PYTEST_XDIST_WORKER"] = name
    factory = config._tmp_path_factory  # type: ignore[attr-defined]  # noqa: SLF001
    config.option.basetemp = str(factory.getbasetemp() / f"popen-{name}")
    config._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]  # noqa: SLF001
    if capture := config.pluginmanager.get_plugin("capturemanager"):
        capture.stop_global_capturing()  # Its files are those of the process before.
        capture.start_global_capturing()
        capture.suspend_global_capture()
    for screen in ("terminalreporter", "terminalprogress-plugin"):
        if config.pluginmanager.has_plugin(screen):
            config.pluginmanager.unregister(name=screen)


def _run(session: pytest.Session, end: Connection) -> None:
    given = deque[int]()
    # Known before a test ends: what it shares with the next one stays.
    while given or (given := _more(end)):
        item = session.items[given.popleft()]
        end.send(("begin",))
        given = given or _more(end)
        following = session.items[given[0]] if given else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        end.send(("finish",))
        if session.shouldstop:
            pytest.exit(str(session.shouldstop))
        if session.shouldfail:
            return


def _more(end: Connection) -> deque[int]:
    end.send(("more",))
    return deque(end.recv())


class _Teller:
    """Tells what pytest says of a test to the process that reports it."""

    def __init__(self, config: pytest.Config, end: Connection) -> None:
        self._config = config
        self._end = end
        option = config.option
        #: Of most tests only the call is told: that nothing went wrong before and behind it shows
        #: in no summary, and to tell it costs more than most tests.
        self._tells_all = bool(
            option.durations or option.xmlpath or {"A", "P"} & {*option.reportchars}
        )
        #: Not while it is registered: pytest then repeats all warnings from before the fork.
        self.is_ready = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call" and not self._tells_all:
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._end.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        if not self.is_ready:
            return
        place = {"when": when, "nodeid": nodeid, "location": location}
        self._end.send(("warning", serialize_warning_message(warning_message), place))
