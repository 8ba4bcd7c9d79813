"""The command `bin/bench`."""

import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, NoReturn, TypeAlias

import typer

from tests.bench.changes import add_changes
from tests.bench.fuzz import add_fuzz
from tests.bench.guests import add_guests
from tests.bench.probe import PROBES
from tests.bench.replicas import add_replicas

if TYPE_CHECKING:
    from tests.bench.crash import Blow, Target
    from tests.bench.kafka import Rate
    from tests.bench.spark import Figure

#: Where the environment with other stream processors is, unless it is said.
_PEERS: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gearpy-peers"
_KAFKA_PEERS: Final = _PEERS.with_name("gearpy-kafka-peers")
#: What `spark` measures.
_SPARK_KINDS: Final = frozenset({"log", "handoff", "many", "start"})
#: Runs with hundreds of windows that wait for Spark, at most.
_RUNS_MANY: Final = 5

#: Options of the benches that strike a cluster.
_Faults: TypeAlias = Annotated[int, typer.Option(help="how many")]
_Seed: TypeAlias = Annotated[int, typer.Option(help="decides which faults, and when")]
_Rate: TypeAlias = Annotated[float, typer.Option(help="records per second")]
_Sets: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", help="key=value of the configuration")
]
_Folder: TypeAlias = Annotated[
    Path | None, typer.Option(help="an empty one, for all that is written; kept then")
]

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
add_guests(app)
add_changes(app)
add_fuzz(app)
add_replicas(app)


@app.command()
def micro(
    names: Annotated[list[str] | None, typer.Argument(help="of cases; else all")] = None,
    scale: Annotated[float, typer.Option(help="records, as a share of the usual number")] = 1.0,
) -> None:
    """What one record costs in single steps: CPU time, ns."""
    from tests.bench.micro import CASES, measure_micro

    if unknown := [each for each in names or () if each not in CASES]:
        typer.echo(f"micro: no case {unknown[0]!r}: there are {', '.join(CASES)}", err=True)
        raise typer.Exit(2)
    for name, ns in measure_micro(names or (), scale=scale):
        typer.echo(f"{name:28} {ns:8,.0f} ns a record")


@app.command()
def tables(
    urls: Annotated[list[str] | None, typer.Argument(help="of servers, as sql_sink takes")] = None,
    records: Annotated[int, typer.Option(help="of each run")] = 200_000,
    runs: Annotated[int, typer.Option(help="of each; the best one counts")] = 3,
) -> None:
    """How fast tables of SQLite, DuckDB, Iceberg and servers are written and read."""
    from tests.bench.tables import measure_tables

    for each in measure_tables(urls or (), records=records, runs=runs):
        rates = f"{each.per_cpu_s:10,.0f} a CPU second {each.per_s:10,.0f} a second"
        typer.echo(f"{each.name:24} {rates}")


@app.command()
def processes(
    number: Annotated[int, typer.Option(help="processes to compare with one")] = 2,
    scale: Annotated[float, typer.Option(help="records, as a share of the usual number")] = 1.0,
    runs: Annotated[int, typer.Option(help="of each, in turns")] = 3,
) -> None:
    """How much faster work in Python is on several processes: seconds, CPU seconds."""
    from tests.bench.processes import measure_spread

    took: dict[tuple[str, int], list[float]] = {}
    with TemporaryDirectory(prefix="gearpy-processes-") as folder:
        for each in measure_spread(Path(folder), processes=number, scale=scale, runs=runs):
            took.setdefault((each.program, each.processes), []).append(each.seconds)
            typer.echo(
                f"{each.program:6} {each.processes} {each.records:8,} records  "
                f"{each.seconds:6.2f} s  {each.cpu_seconds:6.2f} s of CPU"
            )
    for program in dict.fromkeys(name for name, _ in took):
        ratio = min(took[program, 1]) / min(took[program, number])
        typer.echo(f"{program:6} {ratio:.2f} times as fast, by the best of {runs}")


@app.command()
def looks(
    keys: Annotated[int, typer.Option(help="counted by the step that is looked at")] = 1_000_000,
    times: Annotated[int, typer.Option(help="looks of each kind")] = 10,
) -> None:
    """What a look at state costs: time of a query, pauses of the task."""
    from tests.bench.looks import measure_looks

    with TemporaryDirectory(prefix="gearpy-looks-") as folder:
        for each in measure_looks(Path(folder), keys=keys, times=times):
            took = " ".join(f"{seconds:5.2f}" for seconds in sorted(each.seconds))
            used = " ".join(f"{seconds:5.2f}" for seconds in sorted(each.cpu_seconds))
            gaps = " ".join(f"{gap_ms:5.1f}" for gap_ms in each.gaps_ms)
            typer.echo(f"{each.way:10} longest pauses {gaps} ms")
            if took:
                typer.echo(f"{'':10} seconds {took}\n{'':10} of CPU  {used}")


@app.command()
def sol(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 5,
    runs: Annotated[int, typer.Option(help="runs of each kind")] = 3,
    fixed_rate: Annotated[float, typer.Option(help="msg/s at which to take latency, too")] = 5e5,
    executors: Annotated[
        str, typer.Option(help="thread: one executor; process: two, joined by TCP; or both")
    ] = "both",
    *,
    tables: Annotated[
        bool,
        typer.Option("--tables", help="instead: CPU time of a row of tables, by key to 8 tasks"),
    ] = False,
) -> None:
    """Messages per second and latency of one hop, in process and over TCP between processes.

    Each kind runs at full speed, at half of that, at a fixed rate, and with whole batches.
    """
    from tests.bench.sol import run_sol
    from tests.bench.table_hops import measure_hops

    if tables:
        for way, rows, keys, ns in measure_hops(runs):
            typer.echo(f"{way:10}  tables of {rows:6,} rows, {keys:6,} keys {ns:9,.0f} ns a row")
        return
    typer.echo(f"{'':34} {'msg/s':>12} {'p50 ms':>8} {'p99 ms':>8} {'MB begin':>9} {'MB end':>7}")
    for kind in ("thread", "process"):
        if executors not in {kind, "both"}:
            continue
        run = partial(run_sol, kind)
        full = [_show(f"{kind}, full speed", run({"seconds": seconds})) for _ in range(runs)]
        half = sorted(full)[len(full) // 2] / 2
        for rate in (half, fixed_rate):
            for _ in range(runs):
                _show(f"{kind}, at {rate:,.0f}/s", run({"seconds": seconds, "rate": rate}))
        for _ in range(runs):
            _show(f"{kind}, batches", run({"seconds": seconds, "batch": True}))


@app.command()
def scale() -> None:
    """Messages of clusters by size: in a model, and counted in simulations and runs."""
    from tests.bench.scale import KINDS, REAL, SIMULATED, predicted, real, simulated, sizes

    typer.echo("tasks executors links/task link msg/s  cores  promise every letters/s  app master")
    for each in sizes():
        typer.echo(
            f"{each.tasks:6,} {each.executors:8,} {each.links_a_task:10,.0f} "
            f"{each.messages_s:10,.0f} "
            f"{each.cores_of_links:6.1f} {each.promise_every_ms:9,.0f} ms {each.letters_s:10,.0f} "
            f"{each.core_of_clocks:10.3f}"
        )
    typer.echo(f"{'model / counted':26}" + "".join(f"{kind:>14}" for kind in KINDS))
    for name, measure, cases in (("simulated", simulated, SIMULATED), ("real", real, REAL)):
        for tasks, executors in cases:
            model = predicted(tasks=tasks, executors=executors)
            found = measure(tasks=tasks, executors=executors)
            pairs = (f"{model[kind]:6.0f} / {found[kind]:5.0f}" for kind in KINDS)
            typer.echo(f"{name:10} {tasks:3} tasks on {executors} " + " ".join(pairs))


@app.command()
def work(
    names: Annotated[list[str] | None, typer.Argument(help="of paths; else all")] = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="write the table anew")] = False,
    reason: Annotated[str, typer.Option(help="why figures have grown, for --write")] = "",
) -> None:
    """Instructions and calls of Python that a record, a batch and an epoch take.

    They are the same in each run, and are compared with the committed table, which `--write` writes
    anew. Ends with 1 if a figure has grown since.
    """
    from tests.bench.work import PATHS, measure_work
    from tests.bench.work_table import TABLE, WorkTable

    if unknown := [name for name in names or () if name not in PATHS]:
        typer.echo(f"work: no path {unknown[0]!r}: there are {', '.join(PATHS)}", err=True)
        raise typer.Exit(2)
    table, found = WorkTable.read(), measure_work(names or ())
    typer.echo(
        f"{'[instructions, calls]':22}{'of a record':>20}{'of a batch':>20}{'of an epoch':>20}"
    )
    for name, each in found.items():
        costs = (cost for cost in (each.record, each.batch, each.epoch) if cost)
        texts = (f"{cost.instructions:12,.1f}{cost.calls:8,.1f}" for cost in costs)
        typer.echo(f"{name:22}{''.join(texts)}")
    problems = list(table.problems(found))
    if write:
        problems = [] if reason else [each for each in problems if each.is_growth]
    for problem in problems:
        typer.echo(problem.text, err=True)
    if problems:
        raise typer.Exit(1)
    if write:
        TABLE.write_text(table.changed(found, reason).text(), encoding="utf-8")


@app.command()
def recovery(
    times: Annotated[int, typer.Option(help="how often each kind of failure happens")] = 10,
) -> None:
    """How long records stop flowing after a failure, on a cluster of processes."""
    from tests.bench.recovery import measure_leader_losses, measure_recovery

    with TemporaryDirectory(prefix="gearpy-recovery-") as folder:
        typer.echo(f"{'failure':24} {'times':>5} {'p50 s':>7} {'p95 s':>7} {'max s':>7}")
        for each in measure_recovery(Path(folder), times=times):
            typer.echo(
                f"{each.kind:24} {len(each.seconds):5} {each.quantile(0.5):7.2f} "
                f"{each.quantile(0.95):7.2f} {max(each.seconds):7.2f}"
            )
    with TemporaryDirectory(prefix="gearpy-recovery-") as folder:
        for each in measure_leader_losses(Path(folder), times=times):
            typer.echo(
                f"{each.kind:40} {len(each.seconds):5} p50 {each.quantile(0.5):6.2f} s, "
                f"max {max(each.seconds):6.2f} s"
            )


@app.command()
def chaos(
    faults: _Faults = 30, seed: _Seed = 1, rate: _Rate = 2000, folder: _Folder = None
) -> None:
    """Kill and freeze processes for long, and again in recoveries; plain files miss no result."""
    from tests.bench.exactly_once import CHAOS, chaos_plan

    _crash(CHAOS, chaos_plan, times=faults, seed=seed, rate=rate, folder=folder)


@app.command()
def exactly_once(
    *,
    faults: _Faults = 100,
    seed: _Seed = 1,
    pipeline: Annotated[
        str,
        typer.Option(
            help="numbered: state and timers; language: windows, joins; columns: all over Arrow"
        ),
    ] = "numbered",
    rate: _Rate = 2000,
    sets: _Sets = None,
    folder: _Folder = None,
) -> None:
    """Kill and freeze processes of a cluster, in recoveries and epochs too; each result is once."""
    from tests.bench.exactly_once import TARGETS, exactly_once_plan

    if pipeline not in TARGETS:
        raise typer.BadParameter(f"--pipeline must be one of {', '.join(TARGETS)}")
    target = TARGETS[pipeline]
    _crash(target, exactly_once_plan, times=faults, seed=seed, rate=rate, sets=sets, folder=folder)


@app.command()
def kafka_crash(
    *,
    faults: _Faults = 60,
    seed: _Seed = 1,
    rate: _Rate = 2000,
    sets: _Sets = None,
    folder: _Folder = None,
    brokers: Annotated[int, typer.Option(help="1, or 3 with three replicas of each topic")] = 1,
) -> None:
    """Kill and freeze processes and a broker while results go to topics; each is there once."""
    from tests.bench.kafka_crash import KAFKA, KAFKA_3, kafka_plan

    if brokers not in {1, 3}:
        raise typer.BadParameter("--brokers must be 1 or 3")
    target = KAFKA if brokers == 1 else KAFKA_3
    _crash(target, kafka_plan, times=faults, seed=seed, rate=rate, sets=sets, folder=folder)


@app.command()
def postgres_crash(
    faults: _Faults = 60,
    seed: _Seed = 1,
    rate: _Rate = 2000,
    sets: _Sets = None,
    folder: _Folder = None,
) -> None:
    """Kill and freeze processes and a database while results go to tables; each is there once."""
    from tests.bench.postgres_crash import POSTGRES, postgres_plan

    _crash(POSTGRES, postgres_plan, times=faults, seed=seed, rate=rate, sets=sets, folder=folder)


def _crash(
    target: "Target",
    plan: "Callable[[random.Random], Iterable[Blow]]",
    *,
    times: int | None,
    seed: int,
    rate: float,
    sets: Iterable[str] | None = None,
    folder: Path | None,
) -> NoReturn:
    """Strike a cluster, say what came out, and end with 1 if it is not right."""
    from tests.bench.crash import crash

    with TemporaryDirectory(prefix="gearpy-crash-") as temporary:
        report = crash(
            folder or Path(temporary),
            target,
            plan(random.Random(seed)),
            seed=seed,
            rate=rate,
            times=times,
            settings=dict(each.split("=", 1) for each in sets or ()),
            say=typer.echo,
        )
    for line in report.lines():
        typer.echo(line)
    raise typer.Exit(0 if report.is_good else 1)


@app.command()
def checkpoint(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 10,
    runs: Annotated[int, typer.Option(help="pairs of runs of each pipeline")] = 3,
    keys: Annotated[int, typer.Option(help="keys with a large value")] = 1_000_000,
    value_bytes: Annotated[int, typer.Option(help="size of such a value")] = 1000,
    only: Annotated[str, typer.Option(help="overhead, pauses, recovery; or all")] = "all",
) -> None:
    """What epochs cost: throughput, pauses with much state, and the time to get it back."""
    from tests.bench.checkpoint import (
        PIPELINES,
        measure_overhead,
        measure_pauses,
        measure_state_recovery,
    )

    if only in {"overhead", "all"}:
        for pipeline, count in PIPELINES:
            for on, off in measure_overhead(pipeline, count, seconds=seconds, runs=runs):
                name = f"{pipeline}, {count:,} keys"
                typer.echo(f"{name:28} {on / off:6.1%} of {off:12,.0f} records/s")
    if only in {"pauses", "all"}:
        for name, settings in _EPOCHS.items():
            pauses = measure_pauses(settings, keys=keys, value_bytes=value_bytes, seconds=seconds)
            longest = " ".join(f"{gap_ms:6.1f}" for gap_ms in pauses.gaps_ms)
            typer.echo(f"{name:28} longest pauses {longest} ms, {pauses.rate:10,.0f} records/s")
    if only in {"recovery", "all"}:
        with TemporaryDirectory(prefix="gearpy-checkpoint-") as folder:
            for took_s in measure_state_recovery(
                Path(folder), keys=keys, value_bytes=value_bytes, times=runs
            ):
                typer.echo(f"executor killed, {keys:,} keys   {took_s:6.2f} s")


@app.command()
def windows(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 5,
    runs: Annotated[int, typer.Option(help="runs of each kind")] = 3,
    keys: Annotated[int, typer.Option(help="how many")] = 1000,
    rate: Annotated[float, typer.Option(help="events/s at which to take latency")] = 1e5,
    only: Annotated[str, typer.Option(help="rows, columns; or both")] = "both",
) -> None:
    """Sum and count in tumbling windows: events/s of one executor, and how soon results come."""
    from tests.bench.windows import RECORD_PATHS, measure_latency, measure_throughput

    for path in RECORD_PATHS:
        if only not in {path, "both"}:
            continue
        for _ in range(runs):
            per_s, per_cpu_s = measure_throughput(path, seconds=seconds, keys=keys)
            typer.echo(f"{path:8} {per_s:12,.0f} events/s, {per_cpu_s:12,.0f} per CPU second")
        for _ in range(runs):
            p50, p99 = measure_latency(path, seconds=seconds, rate=rate, keys=keys)
            typer.echo(f"{path:8} at {rate:,.0f}/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms")


@app.command()
def peers(
    *,
    runs: Annotated[int, typer.Option(help="turns of each comparison")] = 3,
    words: Annotated[int, typer.Option(help="to count")] = 10_000_000,
    rows: Annotated[int, typer.Option(help="in Parquet files")] = 30_000_000,
    events: Annotated[int, typer.Option(help="that Bytewax counts in windows")] = 1_000_000,
    seconds: Annotated[float, typer.Option(help="of gearpy's runs without a file")] = 5,
    only: Annotated[str, typer.Option(help="names of comparisons, with commas between")] = "all",
    env: Annotated[
        Path, typer.Option(help="environment with Bytewax and PySpark; made on first use")
    ] = _PEERS,
) -> None:
    """Word count and windows on gearpy, Bytewax and PySpark, in turns: ratios of the rates."""
    from tests.bench.peers import COMPARISONS, PeersOptions, best_of, compare_peers, environment

    python = environment(env)
    with TemporaryDirectory(prefix="gearpy-peers-") as folder:
        options = PeersOptions(
            python=python,
            folder=Path(folder),
            words=words,
            rows=rows,
            events=events,
            seconds=seconds,
        )
        for name in COMPARISONS if only == "all" else only.split(","):
            comparison = COMPARISONS[name]
            turns = []
            for turn in compare_peers(comparison, options, runs=runs):
                turns.append(turn)
                theirs = ", ".join(f"{each} {rate:,.0f}" for each, rate in turn.theirs.items())
                typer.echo(
                    f"  {turn.ratio:6.2f}: gearpy {turn.ours:,.0f}/s; {theirs}; "
                    f"load {turn.load:.1f}"
                )
            best, rate = best_of(turns)
            ours = median(turn.ours for turn in turns)
            typer.echo(
                f"{median(turn.ratio for turn in turns):6.2f} (aim {comparison.aim:g}) "
                f"{comparison.name}: medians {ours:,.0f}/s, {best} {rate:,.0f}/s"
            )


@app.command()
def nexmark(
    *,
    queries: Annotated[str, typer.Option(help="with commas between; or all")] = "all",
    form: Annotated[
        list[str] | None,
        typer.Option(help="rows, columns, sql; else the first two"),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="flink, mini (its mini-batches), bytewax, loop, duckdb"),
    ] = None,
    turns: Annotated[int, typer.Option(help="of each query", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="of CPU that a run takes, about")] = 1,
) -> None:
    """Nexmark beside others: M events for each CPU second, at best, and in brackets at worst."""
    from tests.bench.nexmark import FORMS, OTHERS, QUERIES, ask_all
    from tests.servers.recipes import Unavailable

    chosen = QUERIES if queries == "all" else queries.split(",")
    systems = [*(form or ("rows", "columns")), *(beside or ())]
    for given, known in ((chosen, QUERIES), (systems, (*FORMS, *OTHERS))):
        if unknown := [each for each in given if each not in known]:
            raise typer.BadParameter(f"no {unknown[0]!r}: there are {', '.join(known)}")
    try:
        for line in ask_all(systems, chosen, turns=turns, seconds=seconds):
            typer.echo(line)
    except Unavailable as error:
        typer.echo(f"nexmark: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def kafka(
    *,
    records: Annotated[int, typer.Option(help="of 100 bytes, in each topic")] = 1_000_000,
    runs: Annotated[int, typer.Option(help="turns of each topic")] = 3,
    only: Annotated[str, typer.Option(help="readers, writers; or both")] = "both",
    env: Annotated[
        Path, typer.Option(help="environment with Bytewax and Quix Streams; made on first use")
    ] = _KAFKA_PEERS,
) -> None:
    """Rates of a topic of one partition and one of four, in turns with other clients."""
    from tests.bench.kafka import PACKAGES, filled, measure_readers, measure_writers
    from tests.bench.peers import environment
    from tests.servers.kafka import Kafka

    with TemporaryDirectory(prefix="gearpy-kafka-") as folder, Kafka(Path(folder)) as cluster:
        servers = cluster.address.plain
        for partitions in (1, 4):
            if only != "writers":
                python, topic = environment(env, PACKAGES), filled(servers, partitions, records)
                for _ in range(runs):
                    rates = measure_readers(cluster, python, topic, partitions, records)
                    _show_rates(partitions, rates)
            if only != "readers":
                for _ in range(runs):
                    _show_rates(partitions, measure_writers(servers, partitions, records))


def _show_rates(partitions: int, rates: "Iterable[Rate]") -> None:
    """Print the rates of one turn; the first one is that of the bare client."""
    bare = transactions = 0.0
    for rate in rates:
        bare = bare or rate.per_cpu_second
        beside = ""
        if rate.reader == "transactions":
            transactions = rate.per_cpu_second
        elif rate.reader == "exactly-once":
            beside = f", {rate.per_cpu_second / transactions:6.2f} of bare transactions"
        typer.echo(
            f"{partitions} partitions  {rate.reader:13} {rate.per_second:>12,.0f}/s "
            f"{rate.per_cpu_second:>12,.0f} per CPU s, "
            f"{rate.per_cpu_second / bare:6.2f} of bare{beside}; load {rate.load:.1f}"
        )


@app.command()
def compare(
    revision: Annotated[
        str | None, typer.Argument(help="an earlier commit; else where `main` was left, or HEAD~")
    ] = None,
    benches: Annotated[
        list[str] | None, typer.Argument(help=f"some of {', '.join(PROBES)}; else all")
    ] = None,
    *,
    turns: Annotated[int, typer.Option(help="of each bench; two have misled", min=1)] = 4,
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 4,
    short: Annotated[
        bool, typer.Option("--short", help="sol, rows and columns for a second each; never fails")
    ] = False,
) -> None:
    """Run benches on an earlier commit and on this one, in turns; print ratios and their spread."""
    from tests.bench.compare import SHORT, compare_versions, earlier_revision

    revision = revision or earlier_revision()
    if revision is None:
        typer.echo("compare: there is no earlier commit")
        return
    chosen = benches or (SHORT if short else PROBES)
    with TemporaryDirectory(prefix="gearpy-compare-") as folder:
        try:
            for line in compare_versions(
                revision,
                Path(folder),
                benches=chosen,
                turns=turns,
                seconds=min(seconds, 1.0) if short else seconds,
            ):
                typer.echo(line)
        except ValueError as error:
            typer.echo(f"compare: {error}", err=True)
            raise typer.Exit(0 if short else 2) from None


@app.command()
def spark(
    runs: Annotated[int, typer.Option(help="of each kind")] = 5,
    only: Annotated[
        str, typer.Option(help="some of log, handoff, many, start, with commas; or all")
    ] = "all",
) -> None:
    """Windows on their way to Spark: rates of the log, the hand-off, and the start of a session."""
    from tests.bench.spark import measure_spark_start, measure_writer

    kinds = _SPARK_KINDS if only == "all" else {*only.split(",")}
    if unknown := kinds - _SPARK_KINDS:
        raise typer.BadParameter(f"--only: no such kind: {', '.join(sorted(unknown))}")
    typer.echo(f"{'':58} {'median':>12} {'':8} {'from least to most':>26} {'aim':>18} {'ratio':>6}")
    with TemporaryDirectory(prefix="gearpy-spark-") as name:
        folder = Path(name)
        if "start" in kinds:
            for figure in measure_spark_start(runs=runs):
                typer.echo(figure)
        if "log" in kinds:
            for figure in measure_writer(folder, runs=runs):
                typer.echo(figure)
        if kinds & {"handoff", "many"}:
            for figure in _handoffs(folder, runs=runs, kinds=kinds):
                typer.echo(figure)


def _handoffs(folder: Path, *, runs: int, kinds: Collection[str]) -> Iterator["Figure"]:
    """Yield what needs a session, on one as `gearpy.spark.session` makes it."""
    from gearpy.spark import session, stop
    from tests.bench.spark import WAYS, measure_handoff, measure_many

    connected = session("bench", master="local[2]")
    try:
        for way in WAYS if "handoff" in kinds else ():
            yield from measure_handoff(connected, way, folder / way, runs=runs)
        if "many" in kinds:
            yield from measure_many(connected, folder, runs=min(runs, _RUNS_MANY))
    finally:
        stop()


@app.command()
def spark_crash(
    *,
    faults: Annotated[int, typer.Option(help="executors to kill; a fifth of it others")] = 100,
    jvm_faults: Annotated[int, typer.Option(help="JVMs to kill")] = 30,
    seed: _Seed = 1,
    minutes: Annotated[float, typer.Option(help="go on with it for at least so long")] = 0,
    rate: _Rate = 2000,
    sets: _Sets = None,
    folder: _Folder = None,
) -> None:
    """Kill executors and JVMs while windows go to Spark; every table must have each window once."""
    from tests.bench.spark_crash import spark_target
    from tests.bench.spark_plan import again, plan_of

    def plan(rng: random.Random) -> "Iterable[Blow]":
        return again(plan_of(faults, jvm_faults, rng), rng, minutes=minutes)

    target = spark_target()
    _crash(target, plan, times=None, seed=seed, rate=rate, sets=sets, folder=folder)


_EPOCHS: Final = {"no epochs": {"checkpoint.interval-ms": 86_400_000}, "epochs 1 s apart": {}}


@app.command()
def simulate(
    seeds: Annotated[int, typer.Option(help="how many")] = 10_000,
    first: Annotated[int, typer.Option(help="the first one")] = 0,
    processes: Annotated[int, typer.Option(help="that share the work")] = 2,
    *,
    changes: Annotated[
        bool, typer.Option("--changes", help="of an application that is changed while it runs")
    ] = False,
    masters: Annotated[
        bool, typer.Option("--masters", help="with three or five masters; clusters only")
    ] = False,
) -> None:
    """Clusters, and tasks alone, in virtual time with faults; says which seeds went wrong."""
    from tests.bench.simulate import run_seeds

    if changes:
        _simulate_changes(seeds, first, processes)
    if masters:
        _simulate_masters(seeds, first, processes)
    done, bad, faults, restarts, virtual_ms = 0, 0, 0, 0, 0
    for result in run_seeds(first, seeds, processes=processes):
        done, faults = done + 1, faults + len(result.faults)
        restarts, virtual_ms = restarts + result.restarts, virtual_ms + result.virtual_ms
        if result.problem:
            bad += 1
            name = f"seed {result.seed}, {result.kind}"
            typer.echo(f"{name}: {result.problem}; {', '.join(result.faults)}")
        if done % 2000 == 0:
            typer.echo(f"{done // 2} seeds, {bad} went wrong")
    typer.echo(
        f"{done // 2} seeds, each a cluster and tasks alone, {faults} faults, "
        f"{restarts} restarts of tasks, "
        f"{virtual_ms / 3_600_000:.1f} virtual hours: {bad} went wrong"
    )
    raise typer.Exit(1 if bad else 0)


def _simulate_masters(seeds: int, first: int, processes: int) -> NoReturn:
    from tests.bench.simulate_masters import run_masters_seeds

    done, bad = 0, 0
    for seed, problem in run_masters_seeds(first, seeds, processes=processes):
        done, bad = done + 1, bad + bool(problem)
        if problem:
            typer.echo(f"seed {seed}: {problem}")
        if done % 100 == 0:
            typer.echo(f"{done} seeds, {bad} went wrong")
    typer.echo(f"{done} seeds with several masters: {bad} went wrong")
    raise typer.Exit(1 if bad else 0)


def _simulate_changes(seeds: int, first: int, processes: int) -> NoReturn:
    from tests.bench.simulate_changes import run_change_seeds

    done, bad, faults, restarts = 0, 0, 0, 0
    states, phases = Counter[str](), Counter[str]()
    for result in run_change_seeds(first, seeds, processes=processes):
        done, faults, states = done + 1, faults + len(result.faults), states + result.versions
        restarts, phases = restarts + result.restarts, phases + result.phases
        if result.problem:
            bad += 1
            typer.echo(f"seed {result.seed}: {result.problem}; {', '.join(result.faults)}")
        if done % 500 == 0:
            typer.echo(f"{done} seeds, {bad} went wrong")
    told = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    aimed = ", ".join(f"{number} {what}" for what, number in sorted(phases.items()))
    typer.echo(
        f"{done} seeds, {faults} faults and changes, {restarts} restarts, versions: {told}; "
        f"phases of changes: {aimed}: {bad} went wrong"
    )
    raise typer.Exit(1 if bad else 0)


@app.command()
def oracle(
    examples: Annotated[int, typer.Option(help="how many")] = 10_000,
    first: Annotated[int, typer.Option(help="the first seed")] = 0,
    processes: Annotated[int, typer.Option(help="that share the work")] = 2,
    only: Annotated[list[str] | None, typer.Option(help="of these kinds alone")] = None,
) -> None:
    """Windows and joins of all kinds, with crashes, compared with what they mean.

    Says which examples went wrong, made as small as they become, and the last seed.
    """
    from tests.bench.oracle import compare as compare_examples

    done, bad, last = Counter[str](), 0, first
    for outcome in compare_examples(first, examples, processes=processes, kinds=only):
        before = done.total()
        done[outcome.kind] += outcome.done
        last = max(last, outcome.seed)
        if outcome.problem:
            bad += 1
            again = f"--only {outcome.kind} --first {outcome.seed} --examples 1"
            typer.echo(f"wrong, again by {again}: {outcome.problem}")
        if done.total() // 1000 > before // 1000:
            typer.echo(f"{done.total():,} examples up to seed {last}, {bad} seeds went wrong")
    for kind, number in sorted(done.items()):
        typer.echo(f"{kind:24} {number:8,} examples")
    typer.echo(f"{done.total():,} examples, seeds {first} to {last}: {bad} went wrong")
    raise typer.Exit(1 if bad else 0)


def _show(name: str, result: dict[str, float]) -> float:
    typer.echo(
        f"{name:34} {result['rate']:12,.0f} {result['p50_ms']:8.2f} {result['p99_ms']:8.2f} "
        f"{result['rss_begin_mb']:9.1f} {result['rss_end_mb']:7.1f}"
    )
    return result["rate"]


def main() -> None:
    """Run the command."""
    app()
