"""Real stores on a bad day: busy, cut off, started again. What was told stays true."""

import threading
from collections.abc import Callable
from random import Random

import pytest

from gearpy.config.hidden import without_password
from gearpy.storage.folder.api import TEMPORARY
from gearpy.storage.folder.at import file_system_at, folder_at
from gearpy.storage.folder.promises import PROMISES, UNKNOWN, promises_of
from gearpy.storage.folder.url import UrlFolder
from tests.servers.faulty_proxy import Fault, FaultyProxy
from tests.servers.hdfs import Hdfs, HdfsAddress
from tests.servers.s3 import S3Address
from tests.storage.folder_build import REAL, folder_at_url, real_folder, real_url

FAULTS: tuple[Fault, ...] = ("unavailable", "cut", "lost-answer")


def at_s3(store: S3Address) -> UrlFolder:
    """Return a new folder in an object store, whose client does not try again by itself."""
    options = {"config_kwargs": {"retries": {"max_attempts": 1}}, **store.options}
    made = folder_at(f"{store.make_bucket()}/folder", options, key="folder")
    assert isinstance(made, UrlFolder)
    return made


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_s3_changes_nothing(
    faulty_s3: tuple[FaultyProxy, S3Address], fault: Fault
) -> None:
    proxy, store = faulty_s3
    folder = at_s3(store)

    def faulty(step: Callable[[], object]) -> object:
        proxy.fail(fault)
        return step()

    faulty(lambda: folder.put("a", b"1"))
    faulty(lambda: folder.write("b", [b"2", b"3"]))
    assert faulty(lambda: folder.put_new("c", b"4")) is True
    assert faulty(lambda: folder.put_new("c", b"5")) is False
    with folder.create("_pending/d") as file:
        file.write(b"6")
        faulty(lambda: folder.sync(file))
    faulty(lambda: folder.move("_pending/d", to="d"))
    assert faulty(folder.names) is not None
    faulty(lambda: folder.remove("a"))

    assert {name: folder.read(name) for name in folder.walk()} == {"b": b"23", "c": b"4", "d": b"6"}
    assert len(proxy.met) >= 8


def test_many_faults_in_a_row_are_waited_out(faulty_s3: tuple[FaultyProxy, S3Address]) -> None:
    proxy, store = faulty_s3
    folder = at_s3(store)
    folder.put("a", b"0123456789")

    with folder.open("a") as file:
        proxy.fail("unavailable", times=3, at=lambda method, _: method == "GET")
        assert file.read() == b"0123456789"
    assert len(proxy.met) == 3


@pytest.mark.parametrize("server", REAL)
def test_of_many_one_is_first(server: str, request: pytest.FixtureRequest) -> None:
    folder = real_folder(server, request)
    folder.make()
    told: dict[int, bool] = {}

    def race(number: int) -> None:
        told[number] = folder.put_new("schema", b"%d" % number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (first,) = [number for number, is_first in told.items() if is_first]
    assert len(told) == 6
    assert folder.read("schema") == b"%d" % first
    assert folder.names() == ["schema"]


@pytest.mark.parametrize("server", REAL)
def test_what_a_store_promises_is_so(server: str, request: pytest.FixtureRequest) -> None:
    url, options = real_url(server, request)
    writer, reader = (folder_at_url(url, options) for _ in range(2))
    assert reader.promises.replaces
    assert reader.promises.lists_new
    writer.make("_pending")
    whole = [b"%d" % number * 100_000 for number in range(8)]
    writer.put("a", whole[0])

    def replace_often() -> None:
        for number, data in enumerate(whole):
            writer.put(f"_pending/{number}", data)
            writer.move(f"_pending/{number}", to="a")
            writer.put(f"b{number}", b"")

    thread = threading.Thread(target=replace_often)
    thread.start()
    seen = set[str]()
    while thread.is_alive():
        assert reader.read("a") in whole
        names = {name for name in reader.names() if not name.endswith(TEMPORARY)}
        assert names >= seen | {"a"}
        seen = names
    thread.join()

    assert reader.read("a") == whole[-1]
    assert sorted(reader.names()) == ["a", *(f"b{number}" for number in range(len(whole)))]
    assert reader.names("_pending") == []


def test_a_lost_answer_of_hdfs_is_found_out(hdfs: HdfsAddress) -> None:
    with FaultyProxy(f"http://{hdfs.web}") as proxy:
        address = proxy.endpoint.removeprefix("http://")
        made = folder_at(f"webhdfs://root@{address}/lost{Random().random()}", key="folder")
        made.make()
        for name in ("a", "b"):
            proxy.fail("lost-answer", at=lambda _, path: "op=RENAME" in path)
            assert made.put_new(name, name.encode())
        assert not made.put_new("a", b"other")
        proxy.fail("lost-answer", at=lambda _, path: "op=RENAME" in path)
        made.put("a", b"new")

        assert (made.read("a"), made.read("b"), sorted(made.names())) == (b"new", b"b", ["a", "b"])
        assert len(proxy.met) == 3


@pytest.mark.long
def test_a_name_node_that_starts_again_is_waited_for(own_hdfs: Hdfs) -> None:
    url = f"webhdfs://root@{own_hdfs.address.web}/log"
    folder = UrlFolder(*file_system_at(url), patience_ms=120_000)
    folder.make()
    folder.put("before", b"1")

    own_hdfs.names.kill()
    own_hdfs.names.begin()
    folder.put("after", b"2")
    assert folder.put_new("new", b"3")

    assert (folder.read("before"), folder.read("after")) == (b"1", b"2")
    assert sorted(folder.names()) == ["after", "before", "new"]


def test_stores_are_known_by_their_schemes() -> None:
    assert promises_of(("s3", "s3a")) == PROMISES["s3"]
    assert promises_of("ftp") == UNKNOWN
    assert not UNKNOWN.shows_once
    assert all(each.keeps_checkpoints for each in PROMISES.values())
    assert [name for name, each in PROMISES.items() if not each.shows_once] == ["kafka"]


def test_passwords_are_not_shown() -> None:
    assert without_password("webhdfs://ann:secret@host:1/a@b") == "webhdfs://ann@host:1/a@b"
    assert without_password("s3://bucket/a:b@c") == "s3://bucket/a:b@c"
    assert without_password("webhdfs://ann:p@ss:w@host:1/a") == "webhdfs://ann@host:1/a"
    assert without_password("a https://to-ken@host/x@y b") == "a https://***@host/x@y b"
    assert without_password("https://ann:secret@host") == "https://***@host"
