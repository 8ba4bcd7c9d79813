"""The work of a task of Spark that is one of several masters."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from gearpy.cluster.boot.master import MasterDaemon
from gearpy.cluster.host.folders import TemporaryFolder
from gearpy.config.load import from_overrides
from gearpy.errors import ConfigError, LeadershipLost
from gearpy.spark.guest.certificates import make_certificate
from gearpy.spark.guest.order import MasterOrder, master_config
from gearpy.spark.guest.seat_notes import SeatNotes
from gearpy.spark.guest.seats import Seated
from gearpy.spark.guest.task import address_towards, begin_task, task_number
from gearpy.spark.guest.tie import TaskTie

_log = logging.getLogger(__name__)

_ANY_PORT: Final = 1
_POLL_S: Final = 0.05


def be_master(order: MasterOrder, number: int, rows: Iterable[Any]) -> Iterator[Any]:
    """Run the master of a seat until the task is over.

    Raises:
        ConfigError: this machine cannot have a master of that cluster.
        GearpyError: why the master has ended.
    """
    begin_task(order, rows)
    with ExitStack() as opened:
        # A master has its promises on disk, so it may end at any moment.
        opened.enter_context(TaskTie(lambda: None))
        temporary = TemporaryFolder()
        opened.callback(temporary.remove)
        if not Path(order.folder).is_dir():
            raise ConfigError(
                f"a master at {socket.gethostname()} does not see the folder of the cluster, "
                f"{Path(order.folder).parent}: with several masters it has to be one that all "
                "machines see, such as a mounted one"
            )
        notes = SeatNotes(Path(order.folder))
        host = address_towards(from_overrides(order.config).hostname, _ANY_PORT)
        with socket.create_server((host, 0)) as free:
            port = free.getsockname()[1]
        address, attempt = f"{host}:{port}", uuid.uuid4().hex
        notes.tell(number, Seated(address, attempt, executor=_executor(), task=task_number()))
        while (told := notes.order_of(number, attempt)) is None:
            time.sleep(_POLL_S)
        if not told.masters:
            return iter(())

        folder = temporary.path
        if order.authority is not None:
            make_certificate(folder / "certs", order.authority, host)
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(order.secret.hex())
        config = master_config(
            order, number=number, folder=folder, address=address, masters=told.masters
        )
        while True:
            with (
                suppress(LeadershipLost),  # Begin anew: as another node, which does not lead.
                MasterDaemon(
                    config, host=host, port=port, logs="gearpy", joins=told.joins
                ) as master,
            ):
                _log.info("a master of seat %s listens at %s", config.master.folder, master.address)
                master.wait()
                return iter(())


def _executor() -> str:
    """Return a name for the executor of Spark: it has forked the one that has forked this one."""
    with suppress(OSError, ValueError, IndexError):
        of_parent = Path(f"/proc/{os.getppid()}/stat").read_text()
        return f"{socket.gethostname()}-{of_parent.rpartition(')')[2].split()[1]}"
    return ""
