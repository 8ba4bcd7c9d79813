"""The page for users of Gearpump names what is there, and all that Gearpump has."""

import re
from typing import Final

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

import gearpy as gp
from gearpy.cli.main import COMMANDS, today
from gearpy.cluster.boot.remote import RemoteCluster
from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.config.schema import SETTINGS
from gearpy.dsl.streams.keyed import KeyedStream
from gearpy.dsl.streams.stream import Stream
from gearpy.services.application import ROUTERS
from gearpy.task.api.interfaces import Task, TaskContext
from tests.docs.test_docs import ROOT

PAGE: Final = (ROOT / "docs" / "coming-from-gearpump.md").read_text()
PARTS: Final = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])

#: The routes of the guide of 0.6, below the API.
GUIDE: Final = (
    *("GET version", "GET master", "GET config/master", "GET workers", "GET workers/ID"),
    *("GET config/worker/ID", "GET appmasters", "GET appmaster/ID", "DELETE appmaster/ID"),
    *("GET appmaster/ID/stallingtasks", "GET config/app/ID", "GET metrics/app/ID/PATH"),
    "GET websocket/url",
)
#: The keys of Gearpump's configuration, below `gearpump`.
KEYS: Final = (
    *("cluster.masters", "hostname", "worker.slots", "task-dispatcher", "serializers"),
    *("worker.executor-process-launcher", "worker.executor-share-same-jvm-as-worker"),
    *("remote-debug-executor-jvm", "verbose-gc", "resource-allocation-timeout-seconds"),
    *("start-executor-system-timeout-ms", "application.executor-num", "application.total-retries"),
    *("metrics.enabled", "sample-rate", "reporter", "graphite", "metrics.report-interval-ms"),
    *("metrics.retainRecentData", "retainHistoryData", "log.daemon.dir", "log.application.dir"),
    *("serialization-framework", "transport.serializer", "masterclient.timeout", "cgroup"),
    *("jarstore.rootpath", "scheduling.scheduler-class", "services.host", "services.http"),
    *("services.ws", "services.supervisor-actor-path", "services.config-render-option-concise"),
    *("netty", "executor.vmargs", "appmaster.vmargs", "executor.extraClasspath", "yarn", "storm"),
    *("appmaster.extraClasspath", "streaming.ack-once-every-message-count", "source.read.batch"),
    *("streaming.max-pending-message-count-per-connection", "streaming.register-task-timeout-ms"),
    *("streaming.localities", "kerberos.principal", "keytab.file", "hadoopConf", "ui-security"),
    *("akka.http.session", "resource-manager-container-id", "auto-down-unreachable-after"),
)
STREAM: Final = {name for kind in (Stream, KeyedStream) for name in dir(kind)}
CLIENT: Final = {
    name for kind in (ClusterClient, RemoteCluster, RunningApplication) for name in dir(kind)
}
CONTEXT: Final = {*dir(TaskContext), *TaskContext.__dataclass_fields__}


def rows(part: str) -> list[list[str]]:
    found = re.findall(r"^\| (.*) \|$", PARTS[part], re.MULTILINE)
    return [re.split(r" \| ", row) for row in found][1:]


def here(part: str) -> str:
    return "\n".join(row[-1] for row in rows(part))


@pytest.mark.parametrize("part", PARTS)
def test_public_names_are_there(part: str) -> None:
    assert [name for name in re.findall(r"gp\.(\w+)", PARTS[part]) if name not in dir(gp)] == []


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_gearpump_is_answered(key: str) -> None:
    assert any(key in row[0] for row in rows("Configuration"))


def test_keys_that_stand_for_them_are_there() -> None:
    named = re.findall(r"`((?:[a-z]+\.)[a-z-]+)\b[^`(/]*`", here("Configuration"))
    known = {key.partition(".")[0] for key in SETTINGS}
    named = [key for key in named if key.partition(".")[0] in known]
    assert len(named) > 10
    assert [key for key in named if key not in SETTINGS] == []
    same = [row[0] for row in rows("Configuration") if row[-1].startswith("same")]
    keys = [key for cell in same for key in re.findall(r"`([^`]+)`", cell)]
    assert [key for key in keys if key not in SETTINGS] == []


def test_every_route_of_the_guide_is_listed_and_there() -> None:
    listed = [re.findall(r"`([^`]+)`", row[0])[0].partition("[")[0] for row in rows("REST")]
    assert sorted(listed) == sorted(GUIDE)
    there = set()
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute | APIWebSocketRoute)
            path = re.sub(r"\{(app_id|worker_id)\}", "ID", route.path).replace("{path}", "PATH")
            methods = route.methods if isinstance(route, APIRoute) else {"WS"}
            there |= {f"{method} {path[1:]}" for method in methods or ()}
    assert set(GUIDE) <= there
    assert "WS websocket" in there


def test_commands_are_there_and_earlier_options_are_answered() -> None:
    commands = {name for theme in COMMANDS.values() for name in theme}
    named = re.findall(r"`gear (\w[\w-]*)", here("Commands"))
    assert [name for name in named if name not in commands] == []
    options = re.findall(r"(?<![\w-])(-[a-zA-Z]\w+)", "\n".join(row[0] for row in rows("Commands")))
    assert {"-jar", "-appid", "-ip", "-port", "-workernum"} <= set(options)
    assert [each for each in options if not today([each])] == []


def test_methods_are_there() -> None:
    cells = "\n".join(row[-1] for row in rows("Programs"))
    for kind, known in (("on", set(dir(Task))), ("context", CONTEXT)):
        pattern = r"`(on_\w+)\b" if kind == "on" else r"`context\.(\w+)"
        assert [name for name in re.findall(pattern, cells) if name not in known] == []
    steps = next(row[-1] for row in rows("Programs") if row[0].startswith("`map`"))
    assert set(re.findall(r"`(\w+)`", steps)) <= STREAM
    asked = next(row[-1] for row in rows("Programs") if row[0].startswith("`listApps`"))
    assert set(re.findall(r"`(\w+)\(", asked)) <= CLIENT
