"""The database of tests is a real one: what is committed outlives SIGKILL."""

import subprocess

import pytest

from tests.servers.postgres import Postgres, PostgresAddress
from tests.servers.recipes import program


def asked(address: PostgresAddress, statement: str) -> str:
    psql = program("psql", package="postgresql-client")
    done = subprocess.run(
        [psql, "-X", "-A", "-t", "-c", statement, address.url], capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def test_a_shared_server_answers(postgres: PostgresAddress) -> None:
    assert asked(postgres, "select 6 * 7") == "42"


@pytest.mark.long
def test_a_server_of_a_test_is_killed_and_started_again(own_postgres: Postgres) -> None:
    asked(own_postgres.address, "create table counts as select 17 as n")

    own_postgres.server.kill()
    with pytest.raises(subprocess.CalledProcessError):
        asked(own_postgres.address, "select n from counts")
    own_postgres.server.restart()

    assert asked(own_postgres.address, "select n from counts") == "17"
