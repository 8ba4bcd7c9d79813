"""The services over TLS, asked by a client that knows the authority."""

import ssl
from pathlib import Path

import httpx
import pytest

from gearpy.errors import ConfigError
from gearpy.services.server import Services
from gearpy.transport.security.certificates import make_authority_and_node
from tests.eventually import DEADLINE_S
from tests.services.conftest import API, Served, a_config


def test_services_speak_https(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    make_authority_and_node(folder, ["127.0.0.1"], days=2)
    over = {"services.tls": "on", "services.tls-folder": str(folder)}
    config = a_config(tmp_path, **over)
    with Services(served.cluster.client, config, needs_token=False) as services:
        assert services.url.startswith("https://127.0.0.1:")
        known = ssl.create_default_context(cafile=str(folder / "ca.crt"))

        answer = httpx.get(f"{services.url}{API}/overview", verify=known, timeout=DEADLINE_S)

        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=86400"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{services.url}/version", timeout=DEADLINE_S)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http{services.url.removeprefix('https')}/version", timeout=DEADLINE_S)


def test_services_without_a_certificate_say_how_to_make_one(served: Served, tmp_path: Path) -> None:
    over = {"services.tls": "on", "services.tls-folder": str(tmp_path / "none")}

    with pytest.raises(ConfigError, match=r"TLS is on, but there is no .*gear certs"):
        Services(served.cluster.client, a_config(tmp_path, **over))
