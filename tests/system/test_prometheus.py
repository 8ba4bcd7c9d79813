"""A real Prometheus scrapes a real cluster: every chart and every rule has data."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest

from gearpy.errors import GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import DescribeApplication
from gearpy.messages.summaries import ExecutorSummary
from gearpy.metrics.alert_rules import ALERT_RULES, rule_file
from gearpy.metrics.dashboard import CHARTS
from gearpy.services.server import Services
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.bench.process_cluster import ProcessCluster, free_port
from tests.eventually import eventually

DEADLINE_S: Final = 90
#: For a Prometheus that looks each 5 s at processes of a machine that does much else.
LONG_S: Final = 300
#: The executor's share of its memory is known to its worker alone.
RULES: Final = [rule for rule in ALERT_RULES if rule.value]
#: Reads without end, keeps state, puts records aside, and has one source that is read slowly.
PROGRAM: Final = """
import itertools, time
import gearpy as gp

def check(n):
    if n % 2000 == 7:
        raise ValueError("no price")
    return n

class Slow(gp.Task):
    def on_next(self, message):
        self.context.metrics.counter("slow_records").add()
        time.sleep(0.002)
        return [message]

app = gp.StreamApp("numbers")
numbers = app.read(gp.generate(itertools.count, rate=500)).map(check)
by_digit = numbers.key_by(lambda n: n % 10)
by_digit.map_with_state(lambda total, n: (total + n, total), initial=0).write(gp.console())
app.read(gp.collection(range(100_000))).process(Slow).write(gp.console())
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a cluster whose master shows metrics, with an application; return the page's URL."""
    folder, port = tmp_path_factory.mktemp("metrics"), free_port()
    (folder / "numbers.py").write_text(PROGRAM, encoding="utf-8")
    cluster = ProcessCluster(
        folder,
        workers=1,
        settings={
            "checkpoint.interval-ms": "500",
            "application.on-error": "quarantine",
            "streaming.max-pending-message-count-per-connection": "2000",
        },
        master_options=["--metrics", str(port)],
    )
    with cluster:
        cluster.submit(folder / "numbers.py", executors=1)
        yield f"http://127.0.0.1:{port}/metrics"


def got(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:  # noqa: S310 - of this machine
        body: bytes = answer.read()
        return body


def test_promtool_finds_nothing_wrong_with_the_page(page: str, promtool: str) -> None:
    executor = b'process_resident_memory_bytes{app="numbers",process="executor0"}'
    made = b'gearpy_user_slow_records_total{app="numbers",processor="'
    shown = eventually(lambda: executor in (text := got(page)) and made in text and text)

    done = subprocess.run(
        [promtool, "check", "metrics"], input=shown, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    assert b'gearpy_records_in_total{app="numbers",processor="0",task="0.0"}' in shown
    assert b'process_resident_memory_bytes{app="",process="worker' in shown


def test_promtool_takes_the_rules(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rule_file(), encoding="utf-8")

    done = subprocess.run(
        [promtool, "check", "rules", str(tmp_path / "rules.yml")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(RULES)} rules found" in done.stdout


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (
            "run --set application.on-error=quarantine numbers.py",
            'gearpy_records_in_total{app="numbers",processor="0",task="0.0"}',
        ),
        ("local --no-ui --workers 3 --set cluster.masters=127.0.0.1:0", "gearpy_workers 3.0"),
        ("worker --master 127.0.0.1:1", 'process_threads{app="",process="worker"}'),
    ],
    ids=["run", "local", "worker"],
)
def test_a_command_shows_metrics_where_it_says(command: str, shows: str, tmp_path: Path) -> None:
    """At a port that the system has chosen, until it ends."""
    (tmp_path / "numbers.py").write_text(PROGRAM, encoding="utf-8")
    env = {**os.environ, "GEARPY_TRANSPORT_SECRET_FILE": str(tmp_path / "secret")}
    env |= {"GEARPY_WORKER_FOLDER": str(tmp_path / "w"), "GEARPY_LOG_FOLDER": str(tmp_path / "l")}
    env["GEARPY_CHECKPOINT_FOLDER"] = str(tmp_path / "c")
    with (tmp_path / "said").open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, "-P", "-m", "gearpy", *command.split(), "--metrics", "0"],
            cwd=tmp_path,
            env=env,
            stdout=said,
            stderr=said,
        )
    try:
        said_at = tmp_path / "said"
        (url,) = eventually(lambda: re.findall(r"metrics at (\S+/metrics)", said_at.read_text()))
        eventually(lambda: shows in got(url).decode())
    finally:
        running.kill()  # A drain would wait for the slow task.
        running.wait(DEADLINE_S)


def test_every_chart_and_every_rule_has_data(page: str, prometheus: str, tmp_path: Path) -> None:
    """A query that gives nothing would look like a quiet cluster."""
    queries = [rule.value for rule in RULES]
    queries += [query.replace("$app", ".*") for chart in CHARTS for query, _ in chart.lines]

    target = urllib.parse.urlsplit(page).netloc
    with scraping(prometheus, {"static_configs": [{"targets": [target]}]}, tmp_path) as url:
        for query in queries:
            eventually(partial(numbers, url, query), query, every_s=1)
        firing = eventually(lambda: "GearpyQuarantine" in (now := alerts(url)) and now, every_s=1)

    assert "GearpyNoWorkers" not in firing


@pytest.mark.long
def test_executors_are_found_and_found_again(prometheus: str, tmp_path: Path) -> None:
    """Each with its own page, for who shows a token; one that takes the place of another, too.

    Nothing is shown twice: the page of the services has all the rest.
    """
    (tmp_path / "numbers.py").write_text(PROGRAM, encoding="utf-8")
    tokens = TokenFile(tmp_path / "tokens")
    token = tokens.add("prometheus", TokenScope.READ, now_ms=0)
    settings = {
        "services.token-file": str(tokens.path),
        "metrics.executor-port": "0",
        "application.on-error": "quarantine",
        "application.backoff-base-ms": "1",
    }
    with (
        ProcessCluster(tmp_path, workers=1, settings=settings) as cluster,
        Services(cluster.client, cluster.config, port=0) as services,
    ):
        app_id = cluster.submit(tmp_path / "numbers.py", executors=2)
        asks = {"authorization": {"type": "Bearer", "credentials": token}}
        found_by = {"url": f"{services.url}/api/v1.0/prometheus/targets", "refresh_interval": "1s"}
        targets = {"scrape_interval": "5s", **asks, "http_sd_configs": [{**found_by, **asks}]}
        with scraping(prometheus, targets, tmp_path) as url:
            whole = f'{{instance="{urllib.parse.urlsplit(services.url).netloc}"}}'
            begun = with_pages(cluster, app_id, 2)
            first = {each.metrics_address for each in begun}
            at_last(lambda: all(counts(url, each) for each in first))
            at_last(lambda: numbers(url, f"gearpy_application_clock_seconds{whole}"))
            at_last(lambda: not numbers(url, f"gearpy_records_in_total{whole}"))
            at_last(lambda: not numbers(url, "count by (task) (gearpy_records_in_total) > 1"))

            os.kill(begun[0].pid, signal.SIGKILL)
            at_last(lambda: begun[0] not in with_pages(cluster, app_id, 2))
            second = {each.metrics_address for each in with_pages(cluster, app_id, 2)}
            at_last(lambda: all(counts(url, each) for each in second))
            gone = first - second
            at_last(lambda: not any(counts(url, each) for each in gone))

    assert gone


def at_last(holds: Callable[[], Any]) -> None:
    eventually(holds, within_s=LONG_S)


def with_pages(cluster: ProcessCluster, app_id: AppId, number: int) -> list[ExecutorSummary]:
    """Wait for so many executors that run and have a page; return them."""
    found: list[ExecutorSummary] = []

    def are_there() -> bool:
        with suppress(GearpyError):  # The app master is being started, or has much to do.
            executors = cluster.client.ask(DescribeApplication(app_id=app_id)).executors
            found[:] = [each for each in executors if each.metrics_address]
        return len(found) == number

    at_last(are_there)
    return found


def counts(url: str, address: str) -> list[float]:
    return numbers(url, f'gearpy_records_in_total{{instance="{address}"}}')


@contextmanager
def scraping(program: str, targets: dict[str, Any], folder: Path) -> Iterator[str]:
    """Run a Prometheus that reads targets each second, with the rules; give its URL."""
    (folder / "rules.yml").write_text(rule_file(), encoding="utf-8")
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "gearpy", **targets}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    log = folder / "prometheus.log"
    with log.open("wb") as file:
        running = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        listens = re.compile(r'"?Listening on"? address=(\S+)')
        found = eventually(lambda: listens.search(log.read_text()), within_s=DEADLINE_S)
        yield f"http://{found[1]}"
    finally:
        running.terminate()
        running.wait(DEADLINE_S)


def asked(url: str) -> Any:
    """Return the data of an answer of Prometheus; None while it is not up."""
    try:
        return json.loads(got(url))["data"]
    except HTTPError as error:
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            return None
        raise
    except OSError:
        return None


def numbers(url: str, query: str) -> list[float]:
    data = asked(f"{url}/api/v1/query?query={urllib.parse.quote(query)}")
    values = [float(each["value"][1]) for each in data["result"]] if data else []
    return [value for value in values if not math.isnan(value)]


def alerts(url: str) -> set[str]:
    data = asked(f"{url}/api/v1/alerts")
    return {each["labels"]["alertname"] for each in data["alerts"] if each["state"] == "firing"}
