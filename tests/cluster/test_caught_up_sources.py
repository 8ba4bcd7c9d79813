"""What is new, then stop: each source over nights, of which one brings nothing."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from psycopg import sql
from pyarrow import feather
from pyarrow import parquet as pq

import gearpy as gp
from tests.cluster.night_build import night, shown
from tests.servers.postgres import PostgresAddress
from tests.storage.folder_build import folder_at_url, real_url

FIRST: Final = range(5)
MORE: Final = range(5, 12)
#: Adds numbers to what a source reads, and the source.
Growing: TypeAlias = tuple[Callable[[range], object], Callable[[], gp.Source[Any]]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return tmp_path


def packed(numbers: range, kind: str) -> bytes:
    made, table = io.BytesIO(), pa.table({"n": list(numbers)})
    if kind == "parquet":
        pq.write_table(table, made)
    elif kind == "arrow":
        feather.write_feather(table, made, compression="uncompressed")
    else:
        made.write(b"".join(b'{"n": %d}\n' % n for n in numbers))
    return made.getvalue()


def whole_files(kind: str, **options: Any) -> Growing:
    read = {"parquet": gp.parquet, "arrow": gp.arrow, "jsonl": gp.jsonl}[kind]

    def add(numbers: range) -> None:
        Path(f"in/{numbers.start}.{kind}").write_bytes(packed(numbers, kind))

    # A file that is being written is left for later; a night must not wait for that.
    return add, lambda: read(f"in/*.{kind}", settle="0s", **options)


def csv_that_grows() -> Growing:
    def add(numbers: range) -> None:
        with Path("in/all.csv").open("a") as file:
            if file.tell() == 0:
                file.write("n\n")
            file.writelines(f"{n}\n" for n in numbers)

    return add, lambda: gp.csv("in/*.csv", schema={"n": int})


def window_log() -> Growing:
    def add(numbers: range) -> None:
        app = gp.StreamApp(f"made-{numbers.start}")
        rows = app.read(gp.collection([gp.Message(n, n * 1000) for n in numbers]))
        rows.key_by(lambda n: n).window(gp.tumbling("1s")).count().write(
            gp.window_log_folder("log"), name=f"log-{numbers.start}"
        )
        gp.run(app)

    return add, lambda: gp.window_log("log", rows=True)


LOCAL: Final[dict[str, Callable[[], Growing]]] = {
    "csv": csv_that_grows,
    "parquet": lambda: whole_files("parquet"),
    "parquet followed": lambda: whole_files("parquet", follow=True),
    "arrow": lambda: whole_files("arrow"),
    "jsonl in partitions": lambda: whole_files("jsonl", partitions=2),
}


def check_nights(growing: Growing, value: Callable[[Any], int] = lambda row: row["n"]) -> None:
    """Have one night with records, one without, and one with more."""
    add, source = growing

    def app() -> gp.StreamApp:
        app = gp.StreamApp("nightly")
        app.read(source()).map(lambda row: {"n": value(row)}).write(gp.jsonl_folder("out"))
        return app

    add(FIRST)
    assert night(app()).progress.records_in == len(FIRST)
    files = sorted(Path("out").rglob("*"))
    assert night(app()).progress.records_in == len(FIRST)
    assert sorted(Path("out").rglob("*")) == files

    add(MORE)
    progress = night(app()).progress

    assert progress.records_in - progress.records_before == len(MORE)
    assert sorted(each["n"] for each in shown()) == [*FIRST, *MORE]
    assert all(file.stat().st_size for file in Path("out").glob("*.jsonl"))


@pytest.mark.parametrize("kind", LOCAL)
def test_files_of_each_kind_are_read_once_over_nights(kind: str) -> None:
    check_nights(LOCAL[kind]())


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_new_files_of_a_store_are_read_once_over_nights(
    request: pytest.FixtureRequest, kind: str
) -> None:
    url, options = real_url("s3", request)
    store = folder_at_url(url, options)
    read: Any = gp.parquet if kind == "parquet" else gp.jsonl

    check_nights(
        (
            lambda numbers: store.put(f"{numbers.start}.{kind}", packed(numbers, kind)),
            lambda: read(f"{url}/*.{kind}", storage_options=options, settle="0s"),
        )
    )


def test_new_rows_of_a_table_are_read_once_over_nights(postgres: PostgresAddress) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        table = sql.Identifier("caught_up")
        connection.execute(sql.SQL("create table {} (n int primary key)").format(table))

        def add(numbers: range) -> None:
            connection.execute(
                sql.SQL("insert into {} select generate_series({}, {})").format(
                    table, numbers.start, numbers.stop - 1
                )
            )

        check_nights((add, lambda: gp.postgres(postgres.url, "caught_up", by="n")))


def test_new_windows_of_a_log_are_read_once_over_nights() -> None:
    check_nights(window_log(), lambda row: row["key"])


def test_two_files_of_rows_are_joined_over_nights() -> None:
    """A pair whose sides come in different nights is there, once."""

    def pairs() -> gp.StreamApp:
        app = gp.StreamApp("pairs")
        orders, payments = (
            app.read(gp.csv(f"in/{name}.csv", schema={"id": int, "at": int}, time="at"), name=name)
            for name in ("orders", "payments")
        )
        joined = orders.key_by("id").join_interval(payments.key_by("id"), after="10m")
        joined.map(lambda pair: {"id": pair.key}).write(gp.jsonl_folder("out"))
        return app

    for name in ("orders", "payments"):
        Path(f"in/{name}.csv").write_text("id,at\n")
    expected: list[int] = []
    for number in range(3):
        with Path("in/orders.csv").open("a") as orders:
            orders.writelines(f"{number * 10 + n},{number * 100_000 + n}\n" for n in range(10))
        if number > 0:  # Those of the night before are paid, and these are not yet.
            paid = range((number - 1) * 10, number * 10)
            with Path("in/payments.csv").open("a") as payments:
                payments.writelines(f"{n},{number * 100_000}\n" for n in paid)
            expected += paid

        summary = night(pairs())

        assert summary.progress.late_records == 0
        assert sorted(each["id"] for each in shown()) == expected
