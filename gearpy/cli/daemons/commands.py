"""``gear local``, ``gear master``, ``gear worker``: a cluster in this process, or a part of one."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import typer
from msgspec import to_builtins

from gearpy.cli.daemons.workers import workers
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.log import log_to_console, log_to_stderr
from gearpy.cli.terminal.options import Given, MetricsPlace, asking, configured, option, takes
from gearpy.cli.terminal.output import print_json, print_lines, table
from gearpy.cli.terminal.services import NoToken, addresses, open_services
from gearpy.clocks import wall_ms
from gearpy.cluster.boot.master import MasterDaemon, address_to_listen
from gearpy.cluster.boot.worker import WorkerDaemon
from gearpy.cluster.client.client import ClusterClient, MasterChange
from gearpy.cluster.client.measured import cluster_sample
from gearpy.cluster.host.interruptible import wait_interruptibly
from gearpy.cluster.host.metrics_page import metrics_page
from gearpy.cluster.host.open_files import allow_open_files
from gearpy.cluster.net.masters import the_only
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, LeadershipLost, NodeGivenUp
from gearpy.messages.masters import GetMasters, MasterList
from gearpy.messages.metrics import ProcessMetricsData
from gearpy.metrics.process import process_meter
from gearpy.metrics.samples import ClusterSample
from gearpy.transport.api import split_address
from gearpy.transport.security.credentials import is_unspecified
from gearpy.views import text

if TYPE_CHECKING:
    from gearpy.services.server import Services


_Address: TypeAlias = Annotated[str, typer.Argument(metavar="HOST:PORT", help="Of a master.")]


_OF_STATUS: Final = ("silent_ms", "disk")
_NO_SPARE: Final = "no more may be lost: without a majority nothing new is taken"
_STATUS_COLUMNS: Final = (
    "address",
    "role",
    "#behind",
    "heard",
    "#log",
    "snapshot",
    "programs",
    "#free",
    "version",
)


def add_commands(masters: typer.Typer) -> None:
    for name, command in (
        ("list", list_masters),
        ("status", status),
        ("transfer", transfer),
        ("add", add),
        ("remove", remove),
    ):
        masters.command(name, epilog=HELP)(command)


@asking
def list_masters(given: Given) -> None:
    """List the masters of a cluster, as the one that leads sees them."""
    with given.client() as client:
        _show(given, client.ask(GetMasters()))


@asking
def status(given: Given) -> None:
    """Show how the masters are: who leads, who is behind or away, and what is on their disks."""
    with given.client() as client:
        found = client.ask(GetMasters(with_disks=True))
    if given.as_json:
        leader = next((each.address for each in found.masters if each.leads), "")
        masters = [to_builtins(each) for each in found.masters]
        print_json({"term": found.term, "leader": leader, "masters": masters})
        return
    print_lines(status_lines(found))
    rows = []
    for each in found.masters:
        heard = "" if each.leads else f"{text.duration(each.silent_ms)} ago"
        if each.away_since_ms:
            heard = f"not since {text.moment(each.away_since_ms)}"
        row, disk = [each.address, each.role, str(each.behind), heard], each.disk
        if disk is None:
            row += [""] * (len(_STATUS_COLUMNS) - len(row))
        else:
            quota = f" of {text.size(disk.quota_bytes)}" if disk.quota_bytes else ""
            programs = f"{text.count(disk.programs)}, {text.size(disk.programs_bytes)}{quota}"
            row += [text.size(disk.log_bytes), text.moment(disk.snapshot_ms), programs]
            row += [text.size(disk.free_bytes), disk.version]
        rows.append(row)
    table("masters", _STATUS_COLUMNS, rows)


@asking
def transfer(given: Given, address: _Address) -> None:
    """Have another master lead, as before the machine of the leader is shut down."""
    _change(given, "transfer", address)


@asking
def add(given: Given, address: _Address) -> None:
    """Add a master, which was started with --join, to the others."""
    _change(given, "add", address)


@asking
def remove(given: Given, address: _Address) -> None:
    """Remove a master, dead or alive; stop it then. It must not come back with its old folder."""
    _change(given, "remove", address)


def _change(given: Given, change: MasterChange, address: str) -> None:
    with given.client() as client:
        _show(given, client.change_masters(change, address))


def _show(given: Given, found: MasterList) -> None:
    if given.as_json:
        masters = [
            {key: value for key, value in to_builtins(each).items() if key not in _OF_STATUS}
            for each in found.masters
        ]
        print_json({"term": found.term, "masters": masters})
        return
    rows = [
        [each.address, each.role, str(each.behind), text.moment(each.away_since_ms)]
        for each in found.masters
    ]
    table("masters", ("address", "role", "#behind", "away since"), rows)


def status_lines(found: MasterList) -> Iterator[str]:
    """Yield the news about the masters that somebody should know at once."""
    masters = found.masters
    leader = next((each.address for each in masters if each.leads), "no master")
    if not found.term:
        yield f"{leader} has no others: while it is away, nothing new is taken"
        return
    away = sum(each.role == "away" for each in masters)
    yield f"{leader} leads in term {found.term}; {text.plural(len(masters), 'master')}, {away} away"
    spare = (len(masters) - 1) // 2 - away
    yield f"{text.plural(spare, 'master')} more may be lost" if spare > 0 else _NO_SPARE
    versions = sorted({each.disk.version for each in masters if each.disk is not None})
    if len(versions) > 1:
        yield f"they run gearpy {' and '.join(versions)}: an upgrade is under way"


#: `gear master` starts one: that is the group's callback. The others are about all of a cluster.
masters = group("Start a master, or list or change those of a cluster.", no_args_is_help=False)
add_commands(masters)


_Host: TypeAlias = Annotated[str | None, option("--host", metavar="HOST", help="Where to listen.")]
_LogFormat: TypeAlias = Annotated[
    Literal["text", "json"] | None,
    option("--log-format", help="Of the log files; default: log.format."),
]
_LogLevel: TypeAlias = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    option("--log-level", help="Default: log.level."),
]
_Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", help="The log here, too.")]
_as_daemon = takes("conf", "set_", "as_json", "verbose", verbose=_Verbose)


@configured
def local(
    given: Given,
    *,
    workers: Annotated[int, typer.Option("--workers", min=1, max=1000, metavar="N")] = 2,
    slots: Annotated[
        int | None,
        option("--slots", min=1, metavar="N", help="Slots of each worker; default: worker.slots."),
    ] = None,
    executors: Annotated[
        Literal["thread", "process"],
        typer.Option("--executors", help="As threads of this process, or as processes."),
    ] = "thread",
    metrics: MetricsPlace = None,
    ui: Annotated[
        bool, typer.Option("--ui/--no-ui", help="The REST API and the page, at services.port.")
    ] = True,
    no_token: NoToken = False,
) -> None:
    """Run a whole cluster in this process, until Ctrl-C or SIGTERM.

    It listens at the address in cluster.masters. A second Ctrl-C ends it at once. Applications end
    with it; their checkpoints and savepoints stay in checkpoint.folder, for 'gear app submit
    --from-checkpoint'.
    """
    from gearpy.cluster.boot.local import LocalCluster

    config = given.config()
    allow_open_files()
    log_to_stderr(verbose=given.verbose, warnings=True)
    the_only(config.cluster.masters)
    # At a signal it stops, as it was asked to.
    with (
        suppress(KeyboardInterrupt),
        LocalCluster(
            config, workers=workers, slots=slots, listen=True, executors=executors, durable=True
        ) as cluster,
        _page(cluster.client, config, no_token=no_token) if ui else nullcontext() as page,
        _metrics_at(metrics, lambda: cluster_sample(cluster.client), config) as metrics_at,
    ):
        slots = slots or config.worker.slots
        told = {"address": cluster.address, "workers": workers, "slots": slots}
        given.answer(
            {**told, **addresses(page)} if ui else told,
            f"gearpy local cluster at {cluster.address}, {text.plural(workers, 'worker')} "
            f"x {text.plural(slots, 'slot')}{_told(metrics_at)}; stop with Ctrl-C",
            *([f"the page is at {page.page}"] if page else []),
        )
        wait_interruptibly(threading.Event())


@contextmanager
def _page(client: ClusterClient, config: Config, *, no_token: bool) -> Iterator["Services | None"]:
    """Serve the page if that is possible; else say why there is none."""
    try:
        services = open_services(client, config, no_token=no_token)
    except ConfigError as error:
        _tell_on_stderr(f"no page: {error}")
        yield None
        return
    with services:
        yield services


@masters.callback(invoke_without_command=True, epilog=HELP)
@_as_daemon
def master(
    given: Given,
    context: typer.Context,
    *,
    host: _Host = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65_535, help="0 lets the system choose.", metavar="N"),
    ] = None,
    listed: Annotated[
        str | None,
        typer.Option(
            "--masters",
            metavar="HOST:PORT,...",
            help="All masters, as others find them; default: cluster.masters.",
        ),
    ] = None,
    joins: Annotated[
        bool, typer.Option("--join", help="Wait until 'gear master add' makes it one of several.")
    ] = False,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Its log; default: master.folder."),
    ] = None,
    log_format: _LogFormat = None,
    log_level: _LogLevel = None,
    metrics: MetricsPlace = None,
) -> None:
    """Run a master of a cluster, until Ctrl-C or SIGTERM; a second signal ends it at once.

    It says on standard output when it is ready, and all else in its log file. With several in
    cluster.masters it is one of those, and another one takes over when the one that leads is lost.
    """
    if context.invoked_subcommand is not None:
        return
    flags = {"master.folder": folder, "log.format": log_format, "log.level": log_level}
    config = given.config(*_assignments(flags), master=listed)
    allow_open_files()
    log_to_console(config, verbose=given.verbose)
    host, port = address_to_listen(config, host=host, port=port)
    is_told = False
    with suppress(KeyboardInterrupt):
        while True:
            with (
                suppress(LeadershipLost),  # Begin anew: as another node, which does not lead.
                MasterDaemon(
                    config, host=host, port=port, joins=joins, on_refusal=_tell_on_stderr
                ) as daemon,
                _metrics_at(metrics, daemon.sample, config) as url,
            ):
                if not is_told:
                    address = daemon.address
                    given.answer({"address": address}, f"master ready at {address}{_told(url)}")
                    is_told = True
                daemon.wait()
                return


@workers.callback(invoke_without_command=True, epilog=HELP)
@_as_daemon
def worker(
    given: Given,
    context: typer.Context,
    *,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, metavar="N", help="Default: worker.slots.")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master", metavar="HOST:PORT", help="Where the master is; default: cluster.masters."
        ),
    ] = None,
    host: _Host = None,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Where it works; default: worker.folder."),
    ] = None,
    log_format: _LogFormat = None,
    log_level: _LogLevel = None,
    metrics: MetricsPlace = None,
) -> None:
    """Run a worker, until Ctrl-C or SIGTERM; a second signal ends it at once.

    It offers slots and starts a process for each executor in them. When it is told to end, what
    it runs is asked to stop first. It waits for a master that is not there yet.
    """
    if context.invoked_subcommand is not None:
        return
    flags = {
        "worker.slots": slots,
        "worker.folder": folder,
        "hostname": host,
        "log.format": log_format,
        "log.level": log_level,
    }
    config = given.config(*_assignments(flags), master=master)
    allow_open_files()
    log_to_console(config, verbose=given.verbose)

    with (
        suppress(KeyboardInterrupt),  # It was asked to stop, and did.
        _metrics_at(metrics, _measured_here, config) as url,
    ):
        page = ""  # Its address, as other machines see it.
        if url:
            _tell_on_stderr(f"metrics at {url}")
            at, number = split_address(urlsplit(url).netloc)
            page = f"{config.hostname if is_unspecified(at) else at}:{number}"
        while True:
            with (
                suppress(NodeGivenUp),  # Begin anew: as another node, with nothing that runs.
                WorkerDaemon(
                    config,
                    on_ready=lambda text: given.answer({"ready": text}, text),
                    on_waiting=_tell_on_stderr,
                    metrics=page,
                ) as daemon,
            ):
                daemon.wait()
                return


def _metrics_at(
    place: str | None, take: Callable[[], ClusterSample], config: Config
) -> AbstractContextManager[str]:
    return nullcontext("") if place is None else metrics_page(place, take, config=config)


def _told(url: str) -> str:
    return f", metrics at {url}" if url else ""


def _measured_here() -> ClusterSample:
    process = process_meter().sample()
    here = ProcessMetricsData(name="worker", at_ms=wall_ms(), process=process)
    return ClusterSample(processes=(here,))


def _tell_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _assignments(flags: Mapping[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in flags.items() if value is not None]
