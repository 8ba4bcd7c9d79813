"""Programs are tried, and executors begin, in forks of servers that outlive a test."""

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.processes import fork_server
from gearpy.cluster.processes.trial import ProgramTrials

#: As `gearpy.cluster.processes.trial_child` does it, but for being a fork.
_TRIES: Final = (
    "import os\n"
    "from gearpy.cluster.processes.forker import FORK_SERVER, serve\n"
    "from gearpy.cluster.processes.trial_child import main\n"
    "serve(int(os.environ.pop(FORK_SERVER)))\n"
    "main()\n"
)


@pytest.fixture(autouse=True, scope="session")
def _forks_outlive_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Else the name of the test, a variable of the environment, asks for a new server each time.

    Where a worker would start a process for a program that is tried, a fork takes a tenth of it.
    """
    surroundings, begin = fork_server._surroundings, ProgramTrials.__init__  # noqa: SLF001

    def without_test() -> Sequence[object]:
        environment, *others = surroundings()
        assert isinstance(environment, dict)
        environment.pop("PYTEST_CURRENT_TEST", None)
        return (environment, *others)

    @cache
    def shared() -> fork_server.ForkServer:
        command = (sys.executable, "-P", "-c", _TRIES)
        return fork_server.ForkServer(command, tmp_path_factory.mktemp("forks"))

    def begin_with_forks(
        trials: ProgramTrials,
        config: Any,
        *,
        forks: fork_server.ForkServer | None = None,
        folder: Path | None = None,
    ) -> None:
        begin(trials, config, forks=forks or shared(), folder=folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_surroundings", without_test)
        patch.setattr(ProgramTrials, "__init__", begin_with_forks)
        yield
        if shared.cache_info().currsize:
            shared().close()
