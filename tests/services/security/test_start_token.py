"""On this machine alone, services without tokens make one at each start, for their user."""

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from gearpy.errors import ConfigError
from gearpy.services.deps import OF_ONE_RUN
from gearpy.services.server import Services
from gearpy.transport.security.start_token import start_tokens, start_tokens_of
from gearpy.transport.security.tokens import TokenFile, TokenScope
from tests.eventually import DEADLINE_S
from tests.services.conftest import API, PLENTY, Served, a_config
from tests.services.security.test_matrix import UNSAFE, action_of


@pytest.fixture(scope="module")
def of_one_run(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Serve a cluster as `gear run --ui` does."""
    config = a_config(tmp_path_factory.mktemp("run"))
    with Services(served.cluster.client, config, limits=PLENTY, of_one_run=True) as services:
        yield services


def asks(services: Services, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=services.url, timeout=DEADLINE_S, headers=headers)


def bearer(services: Services) -> str:
    assert services.started is not None
    return f"Bearer {services.started.token}"


def test_others_on_this_machine_need_the_token_of_the_start(served: Served, tmp_path: Path) -> None:
    config = a_config(tmp_path)
    folder = start_tokens_of(config.services.token_file)
    with Services(served.cluster.client, config) as services:
        with asks(services) as stranger:
            assert stranger.get(f"{API}/overview").status_code == 401
            assert stranger.get("/metrics").status_code == 401
            assert stranger.delete(f"{API}/appmaster/1").status_code == 401
            assert stranger.get("/").status_code == 200  # The page, which asks for the token.
        with asks(services, authorization=bearer(services)) as own:
            session = own.get(f"{API}/session").json()
            assert (session["scopes"], session["login_required"]) == (
                ["read", "submit", "admin"],
                True,
            )
        (file,) = folder.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert start_tokens(folder) == (services.started,)
        left = file.read_bytes()

    assert start_tokens(folder) == ()
    file.write_bytes(left)  # As of services that were killed.
    file.chmod(0o600)
    assert start_tokens(folder) == ()
    assert not file.exists()


def test_each_start_has_its_own(served: Served, tmp_path: Path) -> None:
    config = a_config(tmp_path)
    with Services(served.cluster.client, config) as first:
        old = bearer(first)
    with Services(served.cluster.client, config) as second, asks(second) as client:
        assert client.get(f"{API}/master", headers={"authorization": old}).status_code == 401


def test_the_address_logs_a_browser_in(served: Served, tmp_path: Path) -> None:
    with Services(served.cluster.client, a_config(tmp_path), limits=PLENTY) as services:
        with asks(services) as browser:
            answer = browser.get(services.page)

            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            assert answer.headers["cache-control"] == "no-store"
            cookie = answer.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert bearer(services).removeprefix("Bearer ") not in cookie
            assert browser.get(f"{API}/overview").status_code == 200
        with asks(services) as other:
            refused = other.get("/?token=gear_wrong")
            assert (refused.status_code, refused.headers["location"]) == (303, "/")
            assert "set-cookie" not in refused.headers


def test_tokens_cannot_be_tried_in_the_address(served: Served, tmp_path: Path) -> None:
    with Services(served.cluster.client, a_config(tmp_path)) as services, asks(services) as client:
        answers = {client.get(f"/?%74oken=gear_{number}").status_code for number in range(20)}

    assert answers == {303, 429}


def test_a_token_that_is_made_later_counts_as_well(served: Served, tmp_path: Path) -> None:
    config = a_config(tmp_path)
    with Services(served.cluster.client, config) as services, asks(services) as client:
        made = TokenFile(config.services.token_file).add("guest", TokenScope.READ, now_ms=1)

        for shown, scopes in ((f"Bearer {made}", 1), (bearer(services), 3)):
            answer = client.get(f"{API}/session", headers={"authorization": shown})
            assert len(answer.json()["scopes"]) == scopes


def test_with_tokens_none_is_made(served: Served, tmp_path: Path) -> None:
    config = a_config(tmp_path)
    TokenFile(config.services.token_file).add("guest", TokenScope.READ, now_ms=1)

    with Services(served.cluster.client, config) as services:
        assert services.started is None
        assert services.page == f"{services.url}/"
        assert start_tokens(start_tokens_of(config.services.token_file)) == ()
    with pytest.raises(ConfigError, match="so everybody needs one: leave --no-token out"):
        Services(served.cluster.client, config, needs_token=False)


def test_without_a_place_for_the_file_they_run(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "services").write_text("no folder")
    with (
        caplog.at_level(logging.WARNING),
        Services(served.cluster.client, a_config(tmp_path)) as services,
        asks(services, authorization=bearer(services)) as own,
    ):
        assert own.get(f"{API}/master").status_code == 200
    assert "'gear token show' will not know these services" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "route"), UNSAFE, ids=[f"{method} {path}" for method, path, _ in UNSAFE]
)
def test_services_of_one_run_do_what_their_page_offers(
    of_one_run: Services, method: str, path: str, route: APIRoute
) -> None:
    action = action_of(route)
    if action is None:
        return
    ids = {"app_id": "99", "rule": "failed", "worker_id": "0", "count": "1"}
    with asks(of_one_run, authorization=bearer(of_one_run)) as own:
        answer = own.request(method, path.format_map(ids))

    is_refused = answer.status_code == 403
    assert is_refused == (action.name not in OF_ONE_RUN), answer.text
    if is_refused:
        assert "is not for the services of one run" in answer.json()["error"]
