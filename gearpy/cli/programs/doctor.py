"""``gear doctor``: what is there on this machine, what is missing, and what brings it."""

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

import typer
from msgspec import Struct, to_builtins

from gearpy import __version__
from gearpy.cli.terminal.connect import connected
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import Given, takes
from gearpy.cli.terminal.output import print_json, table
from gearpy.cli.terminal.runs import is_there
from gearpy.config.load import project_file
from gearpy.distribution import EXTRAS, is_clone, other_project, pip_install, require
from gearpy.errors import ConfigError, GearpyError, NotInstalled
from gearpy.messages.client import GetCluster
from gearpy.views import text

State: TypeAlias = Literal["ok", "missing", "wrong"]
_FREE_MIN: Final = 1 << 30  # Epochs of a busy application fill less than that in an hour or two.


class Diagnosis(Struct, frozen=True):
    """What was looked at, and the cure where there is something to do."""

    what: str
    state: State
    found: str
    fix: str = ""


@takes("conf", "set_", "master", "as_json")
def doctor(given: Given) -> None:
    """Look at Python, extras, Java, folders, ports and the cluster; say what to do.

    What is missing is needed by some programs only; what is wrong ends with exit code 1.
    """
    findings = [*_installed(), *_java(), *_configured(given)]
    if given.as_json:
        print_json({"findings": [to_builtins(each) for each in findings]})
    else:
        rows = [[each.state, each.what, each.found, each.fix] for each in findings]
        table("this machine", ("", "what", "found", "fix"), rows)
    if any(each.state == "wrong" for each in findings):
        raise typer.Exit(FAILED)


def _installed() -> Iterator[Diagnosis]:
    yield Diagnosis("Python", "ok", f"{sys.version.split()[0]}, {sys.executable}")
    yield Diagnosis("gearpy", "ok", f"{__version__}{', a clone' if is_clone() else ''}")
    if warning := other_project():
        yield Diagnosis("gearpy", "wrong", warning, "pip uninstall gearpy")
    modules = defaultdict[str, list[str]](list)
    for module, extra in EXTRAS.items():
        modules[extra].append(module)
    for extra, names in sorted(modules.items()):
        try:
            require(f"the extra {extra}", *names)
        except NotInstalled:
            yield Diagnosis(f"extra {extra}", "missing", ", ".join(names), pip_install(extra))
        else:
            yield Diagnosis(f"extra {extra}", "ok", ", ".join(names))


def _java() -> Iterator[Diagnosis]:
    """Look for the Java that Spark would run on, where PySpark is installed."""
    try:
        require("Spark", "pyspark")
    except NotInstalled:
        return
    from gearpy.spark.sessions.java import find_java

    try:
        java = find_java()
    except NotInstalled as error:
        yield Diagnosis("Java", "missing", str(error), pip_install("spark-java"))
    else:
        yield Diagnosis("Java", "ok", f"{java.version} of {java.origin}, {java.home}")


def _configured(given: Given) -> Iterator[Diagnosis]:
    """Look at what the configuration names: folders, ports, the cluster."""
    try:
        config = given.config()
    except ConfigError as error:
        yield Diagnosis("configuration", "wrong", str(error), "gear config check")
        return
    files = [*filter(None, [project_file()]), *(given.conf or ())]
    yield Diagnosis("configuration", "ok", ", ".join(map(str, files)) or "defaults")
    folders = {
        "checkpoint.folder": config.checkpoint.folder,
        "checkpoint.runs-folder": config.checkpoint.runs_folder,
        "log.folder": config.log.folder,
    }
    for key, folder in folders.items():
        if "://" in folder:
            yield Diagnosis(key, "ok", f"{folder}, not looked at")
            continue
        there = Path(folder).expanduser()
        while not os.access(there, os.F_OK):  # It may be in one that nobody else may enter.
            there = there.parent
        free = shutil.disk_usage(there).free
        found = f"{folder}, {text.size(free)} free"
        if not os.access(there, os.W_OK):
            yield Diagnosis(key, "wrong", f"{found}, not writable", f"chmod, or --set {key}=FOLDER")
        elif free < _FREE_MIN:
            yield Diagnosis(key, "wrong", found, f"make room, or --set {key}=FOLDER")
        else:
            yield Diagnosis(key, "ok", found)
    address = config.cluster.masters[0]
    try:
        with connected(config) as client:
            cluster = client.ask(GetCluster()).cluster_id
        yield Diagnosis("cluster", "ok", f"{cluster} at {address}")
    except GearpyError as error:
        if is_there(address):
            yield Diagnosis(
                "cluster", "wrong", str(error), "transport.secret-file, or another --master"
            )
        else:
            yield Diagnosis("cluster", "missing", f"none at {address}", "gear local starts one")
    port = config.services.port
    if port == 0:
        said = "any port that is free"
    elif is_there(f"127.0.0.1:{port}"):
        said = f"{port} is in use, as by the page of a cluster"
    else:
        said = f"{port} is free"
    yield Diagnosis("services.port", "ok", said)
