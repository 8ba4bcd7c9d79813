"""Feeds parsers with odd inputs, in forks: one that ends its process, or hangs, is found out."""

import faulthandler
import json
import logging
import mmap
import os
import random
import resource
import signal
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import typer

#: A case may take so long, whatever else the machine does.
_CASE_S: Final = 60
_MEMORY_BYTES: Final = 8 << 30
_FORK_CASES: Final = 2000


@dataclass(frozen=True, slots=True)
class Parser:
    """What is fuzzed.

    Attributes:
        inputs: of one case: lines or records, or one file.
        read: reads them in a folder, and raises what its reader raises; but for a refusal that
            names what it refuses.
    """

    inputs: int
    make: Callable[[random.Random], list[bytes]]
    read: Callable[[list[bytes], Path, random.Random], None]


class Finding(NamedTuple):
    """A case that ended its process, hung, or raised what says too little."""

    case: int
    what: str


def add_fuzz(app: typer.Typer) -> None:
    app.command()(fuzz)


def fuzz(
    parser: Annotated[str, typer.Option(help="one of them, or all")] = "all",
    inputs: Annotated[int, typer.Option(help="lines, records or files, of each parser")] = 100_000,
    seed: Annotated[int, typer.Option(help="decides which")] = 1,
    first: Annotated[int, typer.Option(help="case to begin with, to see one again")] = 0,
) -> None:
    """Feed parsers of all sources with odd and damaged inputs; none may end the process."""
    from tests.bench.fuzz_parsers import PARSERS  # noqa: PLC0415 - when it is run

    if parser not in {*PARSERS, "all"}:
        raise typer.BadParameter(f"--parser must be one of {', '.join(PARSERS)}, or all")
    found = 0
    for name, each in PARSERS.items():
        if parser in {name, "all"}:
            cases = range(first, first + -(-inputs // each.inputs))
            findings = list(findings_of(each, cases, seed))
            kinds = Counter(finding.what for finding in findings)
            typer.echo(f"{name:16} {len(cases) * each.inputs:10,} inputs, {len(kinds)} findings")
            for what, count in kinds.most_common():
                case = next(finding.case for finding in findings if finding.what == what)
                typer.echo(f"  {count} times, first in case {case}: {what}")
            found += len(kinds)
    raise typer.Exit(1 if found else 0)


def findings_of(parser: Parser, cases: Sequence[int], seed: int) -> Iterator[Finding]:
    """Run cases in forks; go on behind one that ends its fork."""
    at = mmap.mmap(-1, 8)
    begin = 0
    while begin < len(cases):
        some = cases[begin : begin + _FORK_CASES]
        code, told = _forked(parser, some, seed, at)
        yield from told
        begin += len(some)
        if code:
            (case,) = struct.unpack("=q", at[:8])
            yield Finding(case, f"the process ended: {code}")
            begin = cases.index(case) + 1


def _forked(
    parser: Parser, cases: Sequence[int], seed: int, at: mmap.mmap
) -> tuple[str, list[Finding]]:
    """Run cases in a fork; return how it ended, if not well, and what it found."""
    with TemporaryDirectory(prefix="gearpy-fuzz-", dir=_shared_memory()) as folder:
        told = Path(folder) / "told"
        told.touch()
        process = os.fork()
        if not process:
            _run(parser, cases, seed, at, Path(folder))
        _, status = os.waitpid(process, 0)
        findings = [Finding(*json.loads(line)) for line in told.read_text().splitlines()]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name, findings
    return (f"code {os.WEXITSTATUS(status)}" if status else ""), findings


def _run(parser: Parser, cases: Sequence[int], seed: int, at: mmap.mmap, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable()  # Each row that is left out is told.
    faulthandler.disable()  # The parent tells.
    code = 1
    try:
        with (folder / "told").open("a") as told:
            for case in cases:
                at[:8] = struct.pack("=q", case)
                signal.alarm(_CASE_S)
                chance = random.Random(f"{seed}/{case}")
                try:
                    parser.read(parser.make(chance), folder, chance)
                except Exception as error:  # noqa: BLE001 - each is a finding
                    print(json.dumps([case, _shown(error)]), file=told, flush=True)
        code = 0
    finally:
        os._exit(code)


def _shown(error: Exception) -> str:
    text = "".join(letter for letter in str(error) if not letter.isdigit())
    return f"{type(error).__name__}: {text[:90]}"


def _shared_memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of its own
