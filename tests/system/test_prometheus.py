"""A real Prometheus scrapes a real cluster: every chart and every rule has data."""

import json
import math
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest

from gearpy.metrics.alert_rules import ALERT_RULES, rule_file
from gearpy.metrics.dashboard import CHARTS
from tests.bench.process_cluster import ProcessCluster, free_port

DEADLINE_S: Final = 90
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
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - of this machine
        body: bytes = answer.read()
        return body


def test_promtool_finds_nothing_wrong_with_the_page(page: str, promtool: str) -> None:
    """Names, units, kinds and texts follow its conventions."""
    until_s = time.monotonic() + DEADLINE_S
    executor = b'process_resident_memory_bytes{app="numbers",process="executor0"}'
    made = b'gearpy_user_slow_records_total{app="numbers",processor="'
    while not (executor in (shown := got(page)) and made in shown):
        assert time.monotonic() < until_s, shown.decode()
        time.sleep(0.2)

    done = subprocess.run(
        [promtool, "check", "metrics"], input=shown, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    assert b'gearpy_records_in_total{app="numbers",processor="0",task="0.0"}' in shown
    assert b'process_resident_memory_bytes{app="",process="worker' in shown


def test_promtool_takes_the_rules(promtool: str, tmp_path: Path) -> None:
    """All of them."""
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
        until_s, shown = time.monotonic() + DEADLINE_S, ""
        while shows not in shown:
            assert time.monotonic() < until_s, (tmp_path / "said").read_text()
            time.sleep(0.1)
            for url in re.findall(r"metrics at (\S+/metrics)", (tmp_path / "said").read_text())[:1]:
                shown = got(url).decode()
    finally:
        running.kill()  # A drain would wait for the slow task.
        running.wait(20)


def test_every_chart_and_every_rule_has_data(page: str, prometheus: str, tmp_path: Path) -> None:
    """A query that gives nothing would look like a quiet cluster."""
    queries = [rule.value for rule in RULES]
    queries += [query.replace("$app", ".*") for chart in CHARTS for query, _ in chart.lines]

    with scraping(prometheus, page, tmp_path) as url:
        until_s = time.monotonic() + DEADLINE_S
        missing = queries
        while missing := [query for query in missing if not numbers(url, query)]:
            assert time.monotonic() < until_s, missing
            time.sleep(1)
        firing = alerts(url)
        while "GearpyQuarantine" not in firing:
            assert time.monotonic() < until_s, firing
            time.sleep(1)
            firing = alerts(url)

    assert "GearpyNoWorkers" not in firing


@contextmanager
def scraping(program: str, page: str, folder: Path) -> Iterator[str]:
    """Run a Prometheus that reads the page each second, with the rules; give its URL."""
    target = urllib.parse.urlsplit(page).netloc
    (folder / "rules.yml").write_text(rule_file(), encoding="utf-8")
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "gearpy", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait(20)


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
