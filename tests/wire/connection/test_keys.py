"""Who has which key, see `gearpy.wire.connection.keys`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import AuthenticationFailed, ConfigError
from gearpy.ids import AppId, ExecutorId
from gearpy.wire.connection.keys import (
    CLUSTER,
    KEY_BYTES,
    KeyRing,
    LaunchToken,
    Principal,
    application_key,
)

SECRETS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
APPS = st.integers(0, 2**63 - 1).map(AppId)
INT64 = st.integers(-(2**63), 2**63 - 1)
SECRET = b"s" * KEY_BYTES


def a_token(*, app_id: int = 7, expires_ms: int = 1000) -> LaunchToken:
    return LaunchToken.issued(
        KeyRing.of_cluster(SECRET), AppId(app_id), ExecutorId(-1), launch=3, expires_ms=expires_ms
    )


@given(SECRETS, SECRETS, APPS, APPS)
def test_each_application_of_each_cluster_has_its_own_key(
    a: bytes, b: bytes, one: AppId, other: AppId
) -> None:
    keys = {application_key(secret, app) for secret in (a, b) for app in (one, other)}

    assert len(keys) == len({a, b}) * len({one, other})
    assert not keys & {a, b}


@given(APPS, APPS)
def test_the_ring_of_an_application_has_no_other_key(own: AppId, other: AppId) -> None:
    """The invariant: what user code can read of its process opens its own application only."""
    cluster = KeyRing.of_cluster(SECRET)
    ring = KeyRing.of_application(own, application_key(SECRET, own))

    assert ring.key_of(ring.own) == cluster.key_of(ring.own)
    assert ring.key_of(CLUSTER) is None
    assert (ring.key_of(Principal(other)) is None) == (own != other)


def test_the_key_of_an_application_is_fixed() -> None:
    assert application_key(SECRET, AppId(1)).hex() == (
        "ec4abf46d81d2ed5514633b63139940294f0f8f1f99dfd1a7db366a661fc1ac1"
    )


@given(APPS)
def test_a_principal_is_one_number_on_the_wire(app_id: AppId) -> None:
    assert Principal.of_number(Principal(app_id).number) == Principal(app_id)
    assert Principal.of_number(CLUSTER.number) == CLUSTER


def test_a_short_key_is_refused() -> None:
    """An empty key would be everybody's."""
    with pytest.raises(ConfigError, match="the cluster secret has 0 bytes, must have 32"):
        KeyRing.of_cluster(b"")


def test_keys_do_not_show_in_logs() -> None:
    token = a_token()

    assert repr(token.keys) == "KeyRing(application 7, ***)"
    for shown in (repr(token), repr(KeyRing.of_cluster(SECRET))):
        assert token.key.hex() not in shown
        assert repr(token.key) not in shown
        assert repr(SECRET) not in shown


@given(APPS, INT64, INT64, INT64, SECRETS)
def test_a_token_survives_its_line(
    app_id: AppId, executor_id: int, launch: int, expires_ms: int, key: bytes
) -> None:
    """It is one line, so that a reader knows where it ends."""
    token = LaunchToken(
        app_id=app_id,
        executor_id=ExecutorId(executor_id),
        launch=launch,
        expires_ms=expires_ms,
        key=key,
    )

    assert LaunchToken.of_line(token.as_line()) == token
    assert token.as_line().count("\n") == 1


@given(
    st.text()
    | st.sampled_from(
        [
            "",
            "null",
            "[]",
            '[1, 2, 3, 4, "00"]',
            f'[-1, 2, 3, 4, "{"00" * 32}"]',
            f'[true, 2, 3, 4, "{"00" * 32}"]',
            f'[1, 2, 3, 4.0, "{"00" * 32}"]',
            f'[1, 2, 3, {2**63}, "{"00" * 32}"]',
            "[1, 2, 3, 4, 5]",
            "[" * 100_000,
        ]
    )
)
def test_anything_else_is_no_token(line: str) -> None:
    with pytest.raises(ConfigError, match="no launch token on standard input"):
        LaunchToken.of_line(line)


def test_a_token_is_worthless_when_it_has_expired() -> None:
    token = a_token(expires_ms=1000)

    token.check(999)

    with pytest.raises(AuthenticationFailed, match="launch 3 of application 7 expired 500 ms ago"):
        token.check(1500)


def test_an_application_issues_tokens_for_itself_only() -> None:
    keys = a_token(app_id=7).keys

    own = LaunchToken.issued(keys, AppId(7), ExecutorId(1), launch=1, expires_ms=1)

    assert own.key == application_key(SECRET, AppId(7))
    with pytest.raises(ConfigError, match="application 7 cannot start processes of application 8"):
        LaunchToken.issued(keys, AppId(8), ExecutorId(1), launch=1, expires_ms=1)
