"""Questions to an application of actors over HTTP."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.services.server import Services
from tests.eventually import eventually
from tests.services.conftest import API, PLENTY, a_config


@dataclass
class Odd:
    name: str


class Answers(gp.AppMaster):
    def on_question(self, question: object) -> object:
        if question == "refuse":
            raise ValueError("not today")
        if question == "later":
            return self.context.later()
        return {"asked": question, "odd": Odd("x"), "bytes": b"y"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    config = a_config(tmp_path_factory.mktemp("asking"))
    actors = gp.ActorApp("actors", master=Answers, executor=gp.AppExecutor)
    stream = gp.StreamApp("stream")
    stream.read(gp.generate(lambda: iter([]))).write(gp.to_list([]))
    with (
        LocalCluster(config, slots=4) as cluster,
        Services(cluster.client, config, limits=PLENTY, needs_token=False) as services,
        httpx.Client(base_url=services.url + API, timeout=60) as made,
        cluster.submitted(actors) as first,
        cluster.submitted(stream) as second,
    ):
        eventually(lambda: first.summary().status == "active")
        eventually(lambda: second.summary().status == "succeeded")
        yield made
        first.shutdown()


@pytest.mark.parametrize(
    "question", [None, 7, "now", ["a", {"b": 1.5}]], ids=["null", "int", "text", "nested"]
)
def test_a_question_is_any_json_and_so_is_the_answer(http: httpx.Client, question: object) -> None:
    """Values that are none are told as `gear` prints them; no class is looked for."""
    answer = http.post("appmaster/1/ask", json={"question": question})

    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["app_id"], said["answer"]["asked"]) == (1, question)
    assert (said["answer"]["odd"], said["answer"]["bytes"]) == ("x", {"base64": "eQ=="})


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("appmaster/1/ask", {"question": "refuse"}, 409, "Answers refused: not today"),
        ("appmaster/1/ask?timeout_s=0.1", {"question": "later"}, 503, "has not answered for 0.1 s"),
        ("appmaster/2/ask", {"question": 1}, 409, "it must run for that"),
        ("appmaster/9/ask", {"question": 1}, 404, "no application has id 9"),
        ("appmaster/1/ask", {}, 422, "question"),
        ("appmaster/1/ask?timeout_s=1000", {"question": 1}, 422, "timeout_s"),
    ],
    ids=["refused", "late", "ended", "unknown", "none", "long"],
)
def test_what_cannot_be_answered_says_why(
    http: httpx.Client, path: str, body: dict[str, object], status: int, text: str
) -> None:
    answer = http.post(path, json=body)

    assert (answer.status_code, text in answer.json()["error"]) == (status, True), answer.text


def test_the_view_says_that_it_is_of_actors(http: httpx.Client) -> None:
    actors, stream = (http.get(f"appmaster/{number}/view").json() for number in (1, 2))

    assert (actors["of_actors"], actors["processors"]) == (True, [])
    assert stream["of_actors"] is False
