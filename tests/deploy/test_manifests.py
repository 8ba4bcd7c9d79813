"""The files for deployment are what their readers take: schemas, units, names that exist."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from gearpy.config.load import env_name, load
from gearpy.config.schema import SETTINGS
from gearpy.metrics.catalogue import CLUSTER_METRICS
from tests.deploy.parts import DEPLOY, KUBERNETES, manifests
from tests.servers.recipes import Unavailable, packages

_CHECKERS: Final = ("check-jsonschema>=0.39,<1", "kubernetes-validate>=1.37,<2")
_VERSION: Final = "1.31"
_VALIDATE: Final = """
import json, sys, kubernetes_validate
for document in json.load(sys.stdin):
    kubernetes_validate.validate(document, sys.argv[1], strict=True)
"""
_WITHIN_S: Final = 120


@pytest.fixture(scope="module")
def checkers() -> dict[str, str]:
    try:
        folder = packages("checkers of manifests", _CHECKERS)
    except Unavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.long
def test_manifests_are_what_kubernetes_takes(checkers: dict[str, str]) -> None:
    documents = [
        each for name, some in manifests().items() if name != "kustomization.yaml" for each in some
    ]
    told = json.dumps(documents)
    command = [sys.executable, "-c", _VALIDATE, _VERSION]

    subprocess.run(command, input=told, env=checkers, text=True, check=True, timeout=_WITHIN_S)

    wrong = json.dumps([{**documents[0], "speck": {}}])
    found = subprocess.run(
        command, input=wrong, env=checkers, text=True, check=False, stderr=subprocess.PIPE
    )
    assert "speck" in found.stderr


@pytest.mark.long
def test_files_for_compose_are_what_it_takes(checkers: dict[str, str]) -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    files = [str(DEPLOY / name) for name in ("compose.yaml", "compose.masters.yaml")]
    command = [sys.executable, "-m", "check_jsonschema", *schema, *files]
    subprocess.run(command, env=checkers, check=True, capture_output=True, timeout=_WITHIN_S)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_units_are_what_systemd_takes(tmp_path: Path) -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text().replace("/opt/gearpy/bin/gear", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("User=gearpy", "User=root"))
    units = [str(path) for path in tmp_path.iterdir()]

    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        check=False,
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
    )

    mine = [line for line in found.stderr.splitlines() if "gearpy" in line]
    assert mine == []


def test_all_keys_exist() -> None:
    texts = {path: path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}
    known = {env_name(key) for key in SETTINGS} | {"GEARPY_CONFIG"}
    for path, text in texts.items():
        assert set(re.findall(r"\bGEARPY_[A-Z_]+", text)) <= known, path
    for path in DEPLOY.rglob("gear.toml"):
        load([path], env={})


def test_what_is_scaled_by_is_measured() -> None:
    page = (DEPLOY / "kubernetes.md").read_text(encoding="utf-8")
    (scaler,) = manifests()["scaling.yaml"]
    (metric,) = (each["external"]["metric"]["name"] for each in scaler["spec"]["metrics"])
    measured = {each.name for each in CLUSTER_METRICS}

    assert f"as: {metric}" in page
    (query,) = re.findall(r"metricsQuery: '(.*)'", page)
    assert {*re.findall(r"gearpy_\w+", query)} == {"gearpy_slots", "gearpy_free_slots"} <= measured


def test_all_manifests_are_applied() -> None:
    (kustomization,) = manifests()["kustomization.yaml"]
    files = {path.name for path in KUBERNETES.glob("*.yaml")}
    assert files == {"kustomization.yaml", *kustomization["resources"]}


def test_the_image_has_what_the_wheel_is_made_of() -> None:
    allowed = set(
        re.findall(r"^!(\S+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    )
    project = (DEPLOY.parents[1] / "pyproject.toml").read_text()
    assert {"gearpy", "conf", "pyproject.toml", "LICENSE", "README.md"} <= allowed
    assert '"conf/gear.toml" =' in project
    assert 'readme = "README.md"' in project
