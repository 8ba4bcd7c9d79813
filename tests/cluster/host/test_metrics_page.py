"""The page of metrics by HTTP: where it is, what it shows, and when it cannot be."""

import socket
import urllib.request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import pytest

from gearpy.cluster.host.metrics_page import metrics_page
from gearpy.errors import AskTimeout, ConfigError
from gearpy.messages.metrics import ProcessMetricsData, ProcessSample
from gearpy.metrics.samples import ClusterSample


def got(url: str | urllib.request.Request) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - of this machine
        text: str = answer.read().decode()
        return text


def test_each_look_at_the_page_measures_anew() -> None:
    taken = iter(range(1, 10))

    def take() -> ClusterSample:
        process = ProcessSample(pid=1, started_ms=0, threads=next(taken))
        return ClusterSample(
            processes=[ProcessMetricsData(name="worker", at_ms=0, process=process)]
        )

    with metrics_page("0", take) as url:
        assert url.startswith("http://127.0.0.1:")
        for threads in (1, 2):
            assert f'process_threads{{app="",process="worker"}} {threads}.0\n' in got(url)

    with pytest.raises(URLError):
        got(url)


@pytest.mark.parametrize("place", ["", "x", "70000", "localhost:", "127.0.0.1", "-1", "9400:"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match="such as 9400"), metrics_page(place, ClusterSample):
        pass


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        refusal = pytest.raises(ConfigError, match="cannot listen there")
        with refusal, metrics_page(place, ClusterSample):
            pass


def test_whoever_may_not_look_is_told_so() -> None:
    taken: list[int] = []

    def take() -> ClusterSample:
        taken.append(1)
        return ClusterSample()

    with metrics_page("0", take, allows=lambda header: header == "Bearer good") as url:
        with pytest.raises(HTTPError) as refused:
            got(url)
        assert not taken
        asked = urllib.request.Request(url, headers={"Authorization": "Bearer good"})  # noqa: S310
        got(asked)

    with refused.value as answer:
        assert (answer.code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert b"Authorization: Bearer TOKEN" in answer.read()
    assert taken == [1]


def test_a_page_that_cannot_be_measured_says_why() -> None:
    """An empty page would look like a process that does nothing."""

    def take() -> ClusterSample:
        raise AskTimeout("the executor does not answer")

    with metrics_page("0", take) as url, pytest.raises(HTTPError) as failed:
        got(url)

    with failed.value as answer:
        assert (answer.code, answer.read()) == (503, b"the executor does not answer\n")


def test_the_next_port_is_taken_where_several_will_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = min(taken.getsockname()[1], 65_000)
        with metrics_page(f"127.0.0.1:{port}", ClusterSample, ports=500) as url:
            assert got(url) == ""

    assert urlsplit(url).port in range(port, port + 500)
