"""The processes of a way to deploy gearpy, as its files say, with addresses and paths of a test."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

DEPLOY: Final = Path(__file__).parents[2] / "docs" / "deploy"
KUBERNETES: Final = DEPLOY / "kubernetes"
#: Fields of a pod that its environment asks for, besides its name.
_FIELDS: Final = {"status.podIP": "127.0.0.1", "spec.nodeName": "node1"}
#: Stands for the name of the pod in what a test puts in place of a path.
POD: Final = "%POD%"


@dataclass(frozen=True, slots=True)
class Part:
    """One process: what to run, and what is asked to know how it is."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    before: Sequence[Sequence[str]] = ()
    probes: Sequence[Mapping[str, Any]] = field(default_factory=list)


class Changes:
    """Texts of the files, and what stands for them in a test; longer ones first."""

    def __init__(self, **texts: str) -> None:
        self._texts = texts

    def __call__(self, text: str) -> str:
        for old in sorted(self._texts, key=len, reverse=True):
            text = text.replace(old, self._texts[old])
        return text


def manifests() -> dict[str, list[dict[str, Any]]]:
    return {
        path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        for path in sorted(KUBERNETES.glob("*.yaml"))
    }


def of_kubernetes(change: Changes) -> Iterator[Part]:
    """Yield the containers of all pods of StatefulSets, and of one pod of each Deployment."""
    documents = (each for some in manifests().values() for each in some)
    for each in documents:
        pod = each.get("spec", {}).get("template", {}).get("spec")
        if pod is None:
            continue
        is_set = each["kind"] == "StatefulSet"
        for number in range(each["spec"]["replicas"] if is_set else 1):
            yield _of_pod(pod, f"{each['metadata']['name']}-{number}", change)


def _of_pod(pod: Mapping[str, Any], name: str, change: Changes) -> Part:
    def changed(text: str) -> str:
        return change(text).replace(POD, name)

    (container,) = pod["containers"]
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    probes = []
    for probe in (container["readinessProbe"], container["livenessProbe"]):
        (kind,) = (kind for kind in ("httpGet", "tcpSocket") if kind in probe)
        probes.append({kind: {**probe[kind], "port": ports[probe[kind]["port"]]}})
    env: dict[str, str] = {}
    for variable in container["env"]:
        text = _value(variable, name)
        for known, value in env.items():
            text = text.replace(f"$({known})", value)
        env[variable["name"]] = text
    return Part(
        name,
        [_gear(), *map(changed, container["args"])],
        {key: changed(text) for key, text in env.items()},
        [list(map(changed, init["command"])) for init in pod["initContainers"]],
        probes,
    )


def of_compose(change: Changes, *more: str) -> Iterator[Part]:
    """Yield the services of the file for Docker Compose, with further files over it."""
    services: dict[str, dict[str, Any]] = {}
    for file in ("compose.yaml", *more):
        content = yaml.safe_load((DEPLOY / file).read_text(encoding="utf-8"))
        for name, service in content["services"].items():
            before = services.get(service.get("extends", {}).get("service", name), {})
            env = {**before.get("environment", {}), **service["environment"]}
            services[name] = {**before, **service, "environment": env}
    for name, service in services.items():
        command = [*service.get("entrypoint", [_gear()]), *service["command"]]
        env = {
            key: change(str(value)).replace(POD, name)
            for key, value in service["environment"].items()
        }
        words = [change(each).replace("$$", "$").replace(POD, name) for each in command]
        yield Part(name, words, env)


def of_systemd(change: Changes) -> Iterator[Part]:
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        unit = path.read_text(encoding="utf-8")
        (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        lines = re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)
        env = {key: change(text) for key, _, text in (line.partition("=") for line in lines)}
        words = shlex.split(change(command.replace("/opt/gearpy/bin/gear", _gear())))
        yield Part(path.stem.removeprefix("gearpy-"), words, env)


def _value(variable: Mapping[str, Any], pod: str) -> str:
    if "value" in variable:
        return str(variable["value"])
    return {**_FIELDS, "metadata.name": pod}[variable["valueFrom"]["fieldRef"]["fieldPath"]]


def _gear() -> str:
    return str(Path(sys.executable).with_name("gear"))
