"""Numbered records through state and windows into tables, while processes and the server die.

A reader outside must see each row once, and nothing else.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg

from tests.bench import numbered, postgres_numbered
from tests.bench.crash import Blow, CrashRun, Phase, Target
from tests.bench.epoch_signs import ReadSigns
from tests.bench.faults import ANY_KIND, chosen
from tests.bench.process_cluster import ProcessCluster
from tests.servers.postgres import Postgres

#: The file with the address of the database, in the folder of results.
_URL: Final = "url"
_LOOK_S: Final = 0.01
_KINDS: Final[Mapping[str, int]] = {**ANY_KIND, "server SIGKILL": 3, "server SIGSTOP": 1}
_IN_EPOCH: Final[Mapping[str, int]] = {
    "executor SIGKILL": 6,
    "executor SIGSTOP": 3,
    "app master SIGKILL": 3,
    "app master SIGSTOP": 1,
    "server SIGKILL": 3,
}
_PHASES: Final[tuple[Phase, ...]] = ("running", "recovery", "snapshot", "commit", "commit")
#: Rows as the lines that `numbered` compares. Those of one table have no order of their own.
_ROWS: Final[Mapping[str, LiteralString]] = {
    "records": "select key, seq, partition, n from records order by key, seq",
    "sums": 'select "group", begin, sum, records, so_far from sums order by begin',
    "windows": """
        select word as key, value, (extract(epoch from window_start) * 1000)::bigint as start
        from windows order by start
    """,
}


def postgres_plan(rng: random.Random) -> Iterator[Blow]:
    """Yield blows without end, in all phases, most of them while epochs are committed."""
    phases: list[Phase] = ["running"]
    while True:
        phases = phases or rng.sample(_PHASES * 4, 20)
        phase = phases.pop()
        kinds = _IN_EPOCH if phase in {"snapshot", "commit"} else _KINDS
        yield Blow(chosen(kinds, rng), phase)


class _PostgresSigns(ReadSigns):
    """Tells which epochs are shown, by the table of owners.

    Args:
        results: has the file with the address of the database.
    """

    def __init__(self, checkpoints: Path, results: Path) -> None:
        self._url = (results / _URL).read_text()
        super().__init__(checkpoints, results)

    def _read(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            with (
                suppress(psycopg.Error),
                psycopg.connect(self._url, autocommit=True, connect_timeout=5) as database,
            ):
                while not self._is_over.wait(_LOOK_S):
                    self._take(database)

    def _take(self, database: "psycopg.Connection[Any]") -> None:
        found = database.execute("select task, epoch from gearpy_owners where sink ~ 'records'")
        for task, epoch in found.fetchall():
            self._see(task, epoch)


class _PostgresRun(CrashRun):
    """Has a database of its own, whose server is struck like the rest."""

    signs: _PostgresSigns

    def __init__(
        self,
        target: Target,
        cluster: ProcessCluster,
        results: Path,
        *,
        rng: random.Random,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._postgres = Postgres(results.parent / "postgres")
        self._postgres.server.start()
        self._url = self._postgres.address.url
        (results / _URL).write_text(self._url)
        super().__init__(target, cluster, results, rng=rng, say=say)
        self._faults.outsiders["server"] = self._postgres.server

    def start(self, rate: float, *more: str) -> None:
        """Submit the program; it is told of the database, too."""
        super().start(rate, self._url, *more)

    def finish(self, rate: float) -> None:
        """Write down what the reader outside sees, as if it were files."""
        super().finish(rate)
        self._postgres.server.wait_ready()
        with psycopg.connect(self._url, row_factory=psycopg.rows.dict_row) as database:
            for name, statement in _ROWS.items():
                (self.results / name).mkdir()
                with (self.results / name / "part.jsonl").open("w", encoding="utf-8") as file:
                    rows = database.execute(statement)
                    file.writelines(f"{json.dumps(row)}\n" for row in rows)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.signs.close()
        self._postgres.__exit__(*exception)


POSTGRES: Final = Target(
    program=postgres_numbered.__file__,
    check=numbered.check,
    settings={"checkpoint.timeout-ms": "20000"},
    signs=_PostgresSigns,
    run=_PostgresRun,
    healthy_s=120.0,
    end_s=180.0,
)
