"""Records are posted at least once, and again only under the same key."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, cast

import pytest

import gearpy as gp
from gearpy.connectors.http_sink import HttpEpoch, HttpSink, HttpWriter
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.testing import check_sink
from tests.connectors.http_receiver import Answer, Posted, receiver
from tests.eventually import eventually

NUMBERS: Final = [{"n": n} for n in range(7)]
OK: Final = (204, dict[str, str]())


def run(sink: gp.Sink[Any], records: Any = NUMBERS, **options: Any) -> Any:
    app = gp.StreamApp("http")
    app.read(gp.collection(records)).write(sink, **options)
    return gp.run(app)


class PromptWriter(HttpWriter):
    """Waits for what it sends: the contract reads at once what was committed."""

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        super().recover(prepared, epoch=epoch, run=run, incarnation=incarnation)
        eventually(lambda: self.is_delivered or not self._thread.is_alive())

    def commit(self, epoch: int, prepared: HttpEpoch | None) -> None:
        super().commit(epoch, prepared)
        eventually(lambda: self.is_delivered or not self._thread.is_alive())


class PromptSink(HttpSink):
    """Its writers are known: whoever is killed in a simulation stops no thread."""

    writers: ClassVar[list[HttpWriter]] = []

    def open(self, task_index: int, parallelism: int) -> HttpWriter:
        self.writers.append(PromptWriter(self.target, self.writes[0], task_index))
        return self.writers[-1]


@pytest.mark.parametrize("batch", [None, 3])
def test_the_contract_of_a_sink_holds_for_who_leaves_out_known_keys(batch: int | None) -> None:
    """Kills at any line and zombies; where an older epoch is gone back to, keys are new ones."""
    with receiver() as there:

        def make(place: str) -> gp.Sink[Any]:
            sink = gp.http_sink(there.url + place, batch=batch)
            assert isinstance(sink, HttpSink)
            return PromptSink(sink.target)

        check_sink(
            make,
            lambda place: there.taken(f"/{place}"),
            bad={"n": b"none"},
            seeds=3,
            goes_back=False,
        )
        while PromptSink.writers:
            PromptSink.writers.pop().close(completed=False)


def test_each_record_is_a_request_of_its_own_or_many_are_one() -> None:
    with receiver() as there:
        run(gp.http_sink(f"{there.url}one?a=b", headers={"Authorization": "Bearer x"}))
        run(gp.http_sink(f"{there.url}many", batch=3))

    one = [each for each in there.posted if each.path == "/one?a=b"]
    assert [each.body for each in one] == NUMBERS
    assert {each.headers["Authorization"] for each in one} == {"Bearer x"}
    assert {each.headers["Content-Type"] for each in one} == {"application/json"}
    many = [each.body for each in there.posted if each.path == "/many"]
    assert [n for body in many for n in body] == NUMBERS
    assert len(many) == 3
    assert len({each.key for each in there.posted}) == len(there.posted)


#: By the number of the record.
FAILURES: Final[dict[int, Answer]] = {
    0: (503, {}),
    1: None,
    3: (429, {"Retry-After": "0"}),
    4: (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    5: (500, {"Retry-After": "soon", "Content-Length": "100000"}),
}


def test_what_may_pass_is_tried_again_with_the_same_key() -> None:
    def answer(request: Posted, tries: int) -> Answer:
        return FAILURES.get(request.body["n"], OK) if tries < 2 else OK

    with receiver(answer) as there:
        run(gp.http_sink(there.url, timeout="1s"))

    numbers = [each.body["n"] for each in there.posted]
    assert numbers == sorted(numbers)
    assert [numbers.count(n) for n in range(7)] == [3, 3, 1, 3, 3, 3, 1]
    assert len({each.key for each in there.posted}) == 7


def test_a_server_that_says_nothing_is_asked_again() -> None:
    going = threading.Event()

    def answer(_request: Posted, tries: int) -> Answer:
        if tries == 0:
            going.wait(20)
        return OK

    with receiver(answer) as there:
        run(gp.http_sink(there.url, timeout="50ms"), NUMBERS[:1])
        going.set()

    assert len(there.posted) == 2
    assert len({each.key for each in there.posted}) == 1


def test_a_server_that_is_away_is_named_and_waited_for() -> None:
    """Without the path, which may be a secret; the writer can be closed meanwhile."""
    with receiver() as away:
        url = away.url
    writer = gp.http_sink(f"{url}secret").open(0, 1)
    assert isinstance(writer, HttpWriter)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    writer.write_batch(gp.Batch([{"n": 1}], [0]))
    writer.commit(1, cast("HttpEpoch", writer.prepare(1)))

    waits_for = eventually(lambda: writer.waits_for)

    assert "refused" in waits_for
    assert waits_for.startswith(f"{url}***: ")
    assert not writer.has_room
    assert not writer.may_end_epoch
    writer.close(completed=False)


def refuses(*numbers: int) -> Callable[[Posted, int], Answer]:
    def answer(request: Posted, _tries: int) -> Answer:
        body = request.body if isinstance(request.body, list) else [request.body]
        return (422, {}) if any(each["n"] in numbers for each in body) else OK

    return answer


@pytest.mark.parametrize("batch", [None, 3])
def test_a_record_that_is_refused_for_good_is_dealt_with_by_on_error(batch: int | None) -> None:
    with receiver(refuses(1, 6)) as there:
        done = run(gp.http_sink(there.url, batch=batch), on_error="skip")

        assert "2 skipped" in str(done)
        assert sorted(each["n"] for each in there.taken()) == [0, 2, 3, 4, 5]

        with pytest.raises(OperatorError, match=r"answered 422 .*: no such thing") as caught:
            run(gp.http_sink(there.url, batch=batch))
    assert caught.value.record == "{'n': 1}"


def test_an_address_that_has_moved_is_not_followed() -> None:
    with (
        receiver(lambda _request, _tries: (301, {"Location": "https://new/x"})) as there,
        pytest.raises(OperatorError, match=r"answered 301 .* it is at https://new/.* now: write"),
    ):
        run(gp.http_sink(there.url))


MISTAKES: Final[dict[str, tuple[Callable[[], gp.Sink[Any]], str]]] = {
    "ftp": (lambda: gp.http_sink("ftp://h/x"), "this is no address"),
    "host": (lambda: gp.http_sink("http:///x"), "this is no address"),
    "port": (lambda: gp.http_sink("http://h:x/"), "this is no address"),
    "space": (lambda: gp.http_sink("http://h/a b"), "percent"),
    "login": (lambda: gp.http_sink("http://a:b@h/"), "the address has a login"),
    "header": (lambda: gp.http_sink("http://h/", headers={"A": "a\nb"}), "header 'A' is none"),
    "key": (
        lambda: gp.http_sink("http://h/", headers={"idempotency-key": "1"}),
        "is set by the sink",
    ),
    "batch": (lambda: gp.http_sink("http://h/", batch=0), "batch is 0, must be a whole number"),
    "text for batch": (lambda: gp.http_sink("http://h/", batch=cast("Any", "5")), "batch is '5'"),
    "no url": (lambda: gp.http_sink(cast("Any", None)), "url is a NoneType, must be a text"),
    "bytes": (lambda: gp.http_sink(cast("Any", b"http://h/")), "url is a bytes, must be a text"),
    "list": (lambda: gp.http_sink("http://h/", headers=cast("Any", ["A: a"])), "must be a dict"),
    "number": (lambda: gp.http_sink("http://h/", headers=cast("Any", {"A": 5})), "'A' is none"),
    "name": (lambda: gp.http_sink("http://h/", name=cast("Any", None)), "name is None, must be"),
    "no unit": (lambda: gp.http_sink("http://h/", timeout=cast("Any", 5)), "timeout 5 has no unit"),
    "timeout": (lambda: gp.http_sink("http://h/", timeout="0s"), "must be more than 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_arguments_are_checked_when_the_sink_is_made(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=text):
        make()


def test_two_sinks_of_one_address_need_names() -> None:
    """They would send different records under one key."""
    with receiver() as there:
        app = gp.StreamApp("http")
        for name in ("", "", "other"):
            app.read(gp.collection(NUMBERS)).write(gp.http_sink(there.url, name=name))
        with pytest.raises(GearpyError, match=r"2 sinks write to http_sink.*name of its own"):
            gp.run(app)

        app = gp.StreamApp("http")
        for name in ("", "other"):
            app.read(gp.collection(NUMBERS)).write(gp.http_sink(there.url, name=name))
        gp.run(app)
        assert sorted(each["n"] for each in there.taken()) == sorted([*range(7)] * 2)
