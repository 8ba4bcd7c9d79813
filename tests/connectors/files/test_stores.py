"""Files in real stores: read with options of the program's own, and gone on with."""

import io
import json
from collections.abc import Callable
from pathlib import Path

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet as pq

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.testing import Simulation, check_source
from tests.servers.hdfs import HdfsAddress
from tests.storage.folder_build import REAL, folder_at_url, real_url


def a_parquet(numbers: range) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"n": list(numbers)}), made, row_group_size=7)
    return made.getvalue()


def a_source(server: str, kind: str, request: pytest.FixtureRequest) -> Callable[[], gp.Source]:
    """Return a maker of a source of two files; its options are the only way to the store."""
    url, options = real_url(server, request)
    folder = folder_at_url(url, options)
    for number, numbers in enumerate((range(20), range(20, 33))):
        lines = "".join(json.dumps({"n": n}) + "\n" for n in numbers).encode()
        folder.put(f"{number}.{kind}", a_parquet(numbers) if kind == "parquet" else lines)
    read = gp.parquet if kind == "parquet" else gp.jsonl
    return lambda: read(f"{url}/*.{kind}", time="n", storage_options=options)


@pytest.mark.parametrize("server", REAL)
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_options_lead_to_the_store(server: str, kind: str, request: pytest.FixtureRequest) -> None:
    app, results = gp.StreamApp("read"), list[dict[str, int]]()
    app.read(a_source(server, kind, request)()).write(gp.to_list(results))

    Simulation(app).run()

    assert sorted(each["n"] for each in results) == list(range(33))


def test_the_machines_that_have_the_blocks_are_known(
    hdfs: HdfsAddress, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert a_source("hdfs", "parquet", request)().hosts() == ["127.0.0.1"]
    assert a_source("s3", "jsonl", request)().hosts() == []
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    assert gp.jsonl(tmp_path / "a.jsonl").hosts() == []


@pytest.mark.long
@pytest.mark.parametrize("server", REAL)
def test_each_place_can_be_gone_on_from(server: str, request: pytest.FixtureRequest) -> None:
    check_source(a_source(server, "parquet", request), seeds=2)


def test_options_for_files_of_this_machine_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="storage_options are for URLs"):
        gp.csv("a.csv", "b", storage_options={"key": "k"})
