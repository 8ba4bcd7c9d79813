"""``gear spark ...``: a cluster inside a Spark application, started, looked at, and ended."""

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.options import Given, option, takes
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.boot.remote import connect
from gearpy.config.load import as_overrides, load
from gearpy.errors import ConfigError
from gearpy.messages.client import ListWorkers
from gearpy.spark import cluster, session
from gearpy.spark.guest.cluster import CONF_FILE, driver_of
from gearpy.views import text

#: A cluster ends within seconds; its Spark, when it is busy, within a few more.
_END_S: Final = 120
_POLL_S: Final = 0.1

commands = group("Run a cluster inside a Spark application, look at it, end it.")

_Folder: TypeAlias = Annotated[
    Path,
    option(
        "--folder",
        metavar="FOLDER",
        help="What the cluster goes on from: its applications and their checkpoints.",
    ),
]


@commands.command(epilog=HELP)
@takes("conf", "set_", "as_json", "verbose")
def start(
    given: Given,
    *,
    folder: _Folder,
    spark: Annotated[
        str | None,
        option(
            "--spark",
            metavar="URL",
            help="Spark's master, such as yarn; default: that of spark-defaults.conf, else here.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, metavar="N")] = 2,
    max_workers: Annotated[
        int | None,
        option(
            "--max-workers",
            min=1,
            metavar="N",
            help="As many while applications wait for slots; default: as --workers.",
        ),
    ] = None,
    masters: Annotated[
        int,
        typer.Option(
            "--masters",
            metavar="1|3",
            help="One in this process, or three in Spark, each with a core of its own.",
        ),
    ] = 1,
    cores: Annotated[
        int | None,
        option(
            "--cores",
            min=1,
            metavar="N",
            help="Of Spark, for each worker; default: spark.task.cpus.",
        ),
    ] = None,
) -> None:
    """Start a Spark application with a cluster inside, and run it until Ctrl-C or SIGTERM."""
    log_to_stderr(verbose=given.verbose, warnings=True)
    settings = as_overrides(given.config())
    with (
        suppress(KeyboardInterrupt),  # It was asked to end, and does.
        cluster(
            session("gearpy", master=spark),
            workers=workers,
            max_workers=max_workers,
            masters=masters,
            cores=cores,
            folder=folder,
            config=settings,
        ) as started,
    ):
        given.answer(
            {"address": started.address, "workers": workers, "application": started.id},
            f"gearpy cluster at {started.address}, {text.plural(workers, 'worker')} in Spark "
            f"application {started.id}; stop with Ctrl-C\n"
            f"gear finds it by --conf {started.folder / CONF_FILE}",
        )
        started.wait()


@commands.command(epilog=HELP)
@takes("as_json", "verbose")
def status(given: Given, *, folder: _Folder) -> None:
    """Tell where the cluster over a folder runs, and which workers it has."""
    driver, config = driver_of(folder), load([folder / CONF_FILE])
    with connect(config=config) as client:
        workers = client.ask(ListWorkers()).workers
    masters = config.cluster.masters
    if given.as_json:
        print_json(
            {
                "address": ",".join(masters),
                "host": driver.host,
                "pid": driver.pid,
                "workers": [each.address for each in workers],
            }
        )
        return
    print(f"cluster at {', '.join(masters)}: process {driver.pid} on {driver.host}")
    for each in workers:
        taken = each.slots - each.free_slots
        print(f"worker {each.worker_id} at {each.address}: {taken} of {each.slots} slots in use")


@commands.command(epilog=HELP)
@takes("as_json", "verbose")
def stop(given: Given, *, folder: _Folder) -> None:
    """End the cluster over a folder; its applications go on when it is started again.

    A program that has started the cluster itself gets SIGTERM, too.
    """
    driver, conf = driver_of(folder), folder / CONF_FILE
    config = load([conf])
    with connect(config=config) as client:
        client.ask(ListWorkers())  # It is there: the number of a process is used again.
    masters = ", ".join(config.cluster.masters)
    if driver.host != socket.gethostname():
        raise ConfigError(
            f"the driver of this cluster is process {driver.pid} on {driver.host}: end it there, "
            "or end the Spark application"
        )
    os.kill(driver.pid, signal.SIGTERM)
    until_s = time.monotonic() + _END_S
    while conf.exists() and _is_there(driver.pid):
        if time.monotonic() > until_s:
            raise ConfigError(
                f"process {driver.pid} was asked to end {_END_S} s ago and is still there"
            )
        time.sleep(_POLL_S)
    given.answer({"pid": driver.pid}, f"the cluster at {masters} has ended")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
