"""Logins of browsers end."""

from gearpy.services.security.sessions import LOGIN_LASTS_MS, Logins


def test_a_login_ends() -> None:
    logins = Logins()
    login = logins.begin("ann", now_ms=0)
    other = logins.begin("ann", now_ms=0)

    assert logins.token_of(login, LOGIN_LASTS_MS - 1) == "ann"
    assert logins.token_of(login, LOGIN_LASTS_MS) is None
    assert logins.token_of("x", 0) is None
    logins.end(login)
    assert logins.token_of(login, 0) is None
    assert logins.token_of(other, 0) == "ann"
    for _ in range(10_000):
        logins.begin("ben", now_ms=0)
    assert logins.token_of(other, 0) is None
