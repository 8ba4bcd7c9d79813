"""Folder sinks in real stores: what readers see, whatever fails."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

# Ships no type information.
from pyarrow import csv as pa_csv  # type: ignore[import-untyped]
from pyarrow import parquet as pq

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.connectors.folders.json import JsonFolderFormat
from gearpy.connectors.folders.parts import FolderShare
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.data import Batch
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from tests.connectors.failing import Failing
from tests.storage.folder_build import REAL, real_folder, real_url

#: Makes a sink, and reads a file of it.
Kind = tuple[Callable[..., gp.Sink], Callable[[Any], list[int]]]
KINDS: dict[str, Kind] = {
    "jsonl": (gp.jsonl_folder, lambda file: [json.loads(line)["n"] for line in file]),
    "csv": (gp.csv_folder, lambda file: pa_csv.read_csv(file)["n"].to_pylist()),
    "parquet": (gp.parquet_folder, lambda file: pq.ParquetFile(file).read()["n"].to_pylist()),
    "hive": (
        lambda url, **options: gp.hive_folder(url, partition_by="odd", **options),
        lambda file: pq.ParquetFile(file).read()["n"].to_pylist(),
    ),
}


def seen(folder: Folder, read: Callable[[Any], list[int]]) -> list[int]:
    """Return what readers of a folder see, who pass over what is pending."""
    found = []
    for name in folder.walk(into=lambda each: not each.startswith("_")):
        with folder.open(name) as file:
            found += read(file)
    return found


@pytest.mark.parametrize("server", REAL)
@pytest.mark.parametrize(
    "kind",
    ["jsonl", "parquet", *(pytest.param(each, marks=pytest.mark.long) for each in ("csv", "hive"))],
)
def test_failures_neither_lose_nor_repeat(
    server: str, kind: str, request: pytest.FixtureRequest
) -> None:
    """Tasks restart from the newest epoch; what they had written since is not shown."""
    make, read = KINDS[kind]
    url, options = real_url(server, request)
    step = Failing(301, 1200, 1801)
    source = gp.generate(lambda part: count(part, 2), rate=2000, limit=2000, partitions=2)
    app = gp.StreamApp("numbers", parallelism=2)
    rows = app.read(source).map(step).map(lambda n: {"n": n, "odd": n % 2})
    rows.write(make(url, storage_options=options))
    config = {"checkpoint.interval-ms": "100", "application.backoff-base-ms": "1"}

    with LocalCluster(load(env={})) as cluster:
        cluster.client.submit("numbers", embed(app.build()), config=config).wait(120)

    folder = folder_at(url, options, key="folder")
    assert step.left == set()
    assert Counter(seen(folder, read)) == Counter(range(2000))
    assert folder.names("_pending") == []


def writer(folder: Folder, incarnation: int) -> FolderWriter:
    made = FolderWriter("sink", folder, JsonFolderFormat(), FolderShare(task=0))
    made.recover({}, epoch=0, run="r", incarnation=incarnation)
    return made


def prepared(made: FolderWriter, epoch: int, value: int) -> Any:
    made.write_batch(Batch([{"n": value}], [0]))
    return made.prepare(epoch)


@pytest.mark.parametrize("server", REAL)
def test_a_writer_that_was_given_up_shows_nothing(
    server: str, request: pytest.FixtureRequest
) -> None:
    """An epoch is shown once, also when it is committed twice; what is not prepared goes."""
    folder, read = real_folder(server, request), KINDS["jsonl"][1]
    old = writer(folder, 1)
    first, lost = prepared(old, 1, 1), prepared(old, 2, 2)
    old.commit(1, first)
    old.commit(1, first)
    before = seen(folder, read)

    new = FolderWriter("sink", folder, JsonFolderFormat(), FolderShare(task=0))
    new.recover({1: first}, epoch=1, run="r", incarnation=2)
    with pytest.raises(GearpyError, match="has neither"):
        old.commit(2, lost)
    new.commit(2, prepared(new, 2, 22))

    assert (before, sorted(seen(folder, read))) == ([1], [1, 22])
    with pytest.raises(GearpyError, match="was given up"):
        writer(folder, 2)


def test_a_store_that_promises_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ann@host/out .* does not promise .* s3://") as refused:
        gp.jsonl_folder("ftp://ann:secret@host/out")
    assert "secret" not in str(refused.value)
