"""Secrets are hidden in arguments, settings and texts; what is none stays as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.config.hidden import host_alone, shown_args, shown_setting, without_secrets
from gearpy.config.load import load
from gearpy.errors import ConfigError

_SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12)
#: Names of secrets, as programs have them.
_NAMES = (
    *("password", "db-password", "DB_PASSWORD", "passwd", "pwd", "pass", "dbPwd", "sasl.password"),
    *("token", "auth-token", "authToken", "secret", "client_secret", "AWS_SECRET_ACCESS_KEY"),
    *("api-key", "apiKey", "access_key", "private-key", "credentials", "X-Amz-Signature", "sig"),
)


@given(st.sampled_from(_NAMES), _SECRETS)
def test_a_secret_in_an_argument_is_hidden(name: str, secret: str) -> None:
    joined = [f"--{name}={secret}", f"-D{name}={secret}", f"{name}={secret}"]
    assert shown_args(joined) == (f"--{name}=***", f"-D{name}=***", f"{name}=***")
    if not secret.startswith("--"):
        assert shown_args([f"--{name}", secret, "out"]) == (f"--{name}", "***", "out")


@given(st.sampled_from(_NAMES), st.text("abcXYZ0189+/_-.", min_size=12))
def test_a_secret_in_a_text_is_hidden(name: str, secret: str) -> None:
    for text in (
        f"https://host/path?{name}={secret}&more=1",
        f"host=db {name}={secret} user=ann",
        f'{{"{name}": "{secret}", "user": "ann"}}',
        f"jdbc:postgresql://host/db;{name}={secret};ssl=true",
        f"Authorization: Bearer {secret}",
        f"amqp://ann:{secret}@host/queue" if "/" not in secret else "",
    ):
        assert secret not in without_secrets(text)
        assert secret not in shown_args([text])[0]


@pytest.mark.parametrize(
    "args",
    [
        ["--max-tokens=100", "tokenizer=bert", "key=user", "compass=north", "monkey=1"],
        ["--token-file=/run/token", "--password-file", "/run/password", "PASSWORD_PATH=/x"],
        ["--no-token", "--verbose"],
        ["s3://bucket/a:b@c", "/data/*.txt", "2026-01-01T00:00:00Z", "a=b", "x: y", "ä=ö"],
        [""],
        [],
    ],
)
def test_what_is_no_secret_stays(args: list[str]) -> None:
    assert shown_args(args) == tuple(args)


def test_very_long_arguments_are_looked_at_once() -> None:
    for text in ("a" * 100_000, "pass" * 30_000, "-_." * 40_000, "a " * 50_000, "a=" * 50_000):
        assert shown_args([text]) == (text,)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example.org/services/T0/B0/SECRET", "https://hooks.example.org/***"),
        ("http://ann:SECRET@host:8080", "http://host:8080/***"),
        ("https://host?key=SECRET", "https://host/***"),
        ("http://[::1]:9/SECRET", "http://[::1]:9/***"),
        ("https://ann:SEC/RET@host/x", "https://***/***"),
        ("https://host:SECRET/x", "https://***/***"),
        ("https://host", "https://host"),
    ],
)
def test_of_a_webhook_the_host_is_shown(url: str, shown: str) -> None:
    assert host_alone(url) == shown
    assert shown_setting("alerts.webhooks", (url, url)) == (shown, shown)
    assert shown_setting("alerts.webhooks", f'["{url}", "{url}"]') == f'["{shown}", "{shown}"]'
    assert shown_setting("alerts.webhooks", f"{url},{url}") == f"{shown},{shown}"


def test_settings_are_without_secrets() -> None:
    assert shown_setting("checkpoint.folder", "s3://ann:x@host/a") == "s3://ann@host/a"
    assert shown_setting("checkpoint.folder", "az://a/b?sig=x") == "az://a/b?sig=***"
    assert shown_setting("worker.slots", 8) == 8
    assert shown_setting("worker.slots", "8") == "8"


def test_variables_that_are_secret_are_hidden_to_their_end() -> None:
    key, items = "executor.environment", ("DB_PASSWORD=a b,c", "TZ=UTC", "API_KEY=x;y")
    hidden = ("DB_PASSWORD=***", "TZ=UTC", "API_KEY=***")

    assert shown_setting(key, items) == hidden
    assert shown_setting(key, json.dumps(items)) == json.dumps(hidden)
    assert shown_setting(key, "TZ=UTC,API_KEY=x y") == "TZ=UTC,API_KEY=***"
    assert shown_setting(key, "['API_KEY=x y']") == "***"
    with pytest.raises(ConfigError) as refused:
        load(env={}, overrides={key: "DB_PASSWORD=hunter2,wrong"})
    assert "hunter2" not in str(refused.value)
