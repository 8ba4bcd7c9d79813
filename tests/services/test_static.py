"""The page is served with right types, is asked for again cheaply, and nothing else is served."""

import re
from pathlib import Path

import pytest

from gearpy.services import static
from tests.services.conftest import Served

PAGE = Path(static.__file__).with_name("page")
FILES = sorted(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_page_is_served(served: Served, name: str) -> None:
    if Path(name).suffix == ".md" or Path(name).name.startswith("LICENSE"):
        return
    answer = served.http.get(f"/{name}")

    assert answer.status_code == 200
    assert answer.content == (PAGE / name).read_bytes()
    tag = answer.headers["etag"]
    again = served.http.get(f"/{name}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    if name.endswith(".js"):
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


def test_the_page_is_at_the_top(served: Served) -> None:
    """Without a script in it that the policy would refuse."""
    answer = served.http.get("/")

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", answer.text)


@pytest.mark.parametrize(
    "path", ["/app", "/app/", "/page/index.html", "/../server.py", "/%2e%2e/server.py", "/.git"]
)
def test_nothing_else_is_served(served: Served, path: str) -> None:
    assert served.http.get(path).status_code == 404


def test_it_travels_compressed(served: Served) -> None:
    answer = served.http.get("/app/early.js") if not FILES else served.http.get("/")

    assert answer.headers.get("content-encoding") == "gzip" or len(answer.content) < 1000
