"""One measurement of one version of gearpy, in the words of `compare`: a program of its own.

It is run by the file's path, so that it also measures versions that do not have it: all it knows of
them is the package of their benches, `gearpy.bench` or `tests.bench`.
"""

import json
import resource
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

#: Name of a figure, with its unit, to its value.
Figures: TypeAlias = dict[str, float]

_SOL_WARM_UP_S: Final = 1.0
#: Seconds to measure for which each case of `micro` takes all its records.
_MICRO_S: Final = 4.0


def cpu_s() -> float:
    """Return the CPU time of this process and of the children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _sol(kind: str, batch: bool, package: str, seconds: float, _: str) -> Figures:  # noqa: FBT001
    begin_s = cpu_s()
    module = import_module(f"{package}.sol")
    found = module.run_sol(kind, {"seconds": seconds, "batch": batch})
    messages = found["rate"] * (seconds + _SOL_WARM_UP_S)
    return {
        "msg/s": found["rate"],
        "msg/CPU s": messages / (cpu_s() - begin_s),
        "MB at the end": found["rss_end_mb"],
    }


def _windows(path: str, package: str, seconds: float, _: str) -> Figures:
    module = import_module(f"{package}.windows")
    per_s, per_cpu_s = module.measure_throughput(path, seconds=seconds)
    return {"events/s": per_s, "events/CPU s": per_cpu_s}


def _words(package: str, _: float, text: str) -> Figures:
    module = import_module(f"{package}.peer_jobs")
    begin_s = cpu_s()
    found = module.run_job("words", [text], 1)
    return {
        "words/s": found["records"] / found["seconds"],
        "words/CPU s": found["records"] / (cpu_s() - begin_s),
    }


def _epochs(package: str, seconds: float, _: str) -> Figures:
    module = import_module(f"{package}.checkpoint")
    ((on, off),) = module.measure_overhead("map_with_state", 100_000, seconds=seconds, runs=1)
    return {"records/s with epochs": on, "records/s without": off}


def _micro(_: str, seconds: float, __: str) -> Figures:
    # This version's cases, whatever version of gearpy is measured.
    sys.path.insert(0, str(Path(__file__).parent))
    found = import_module("micro").measure_micro(scale=seconds / _MICRO_S)
    return {f"ns, {name}": ns for name, ns in found}


#: Called with the package of benches, seconds to measure and a file of words.
PROBES: Final[dict[str, Callable[[str, float, str], Figures]]] = {
    "sol": partial(_sol, "thread", False),
    "batches": partial(_sol, "thread", True),
    "tcp": partial(_sol, "process", False),
    "rows": partial(_windows, "rows"),
    "columns": partial(_windows, "columns"),
    "words": _words,
    "epochs": _epochs,
    "micro": _micro,
}


def _main() -> None:
    package, name, seconds, text = sys.argv[1:]
    sys.stdout.write("\n" + json.dumps(PROBES[name](package, float(seconds), text)) + "\n")


if __name__ == "__main__":
    _main()
