"""Whether Spark has room for the workers of a cluster, and errors of Spark in one line."""

import re
from typing import Final

_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,")

_NO_GEARPY: Final = (
    "the Python of Spark's executors lacks a module: install gearpy there with what it needs, or "
    "send an environment that has it (spark.archives), and name its Python in spark.pyspark.python"
)
_OTHER_PYTHON: Final = (
    "Spark's executors run another Python than the driver: name the right one in "
    "spark.pyspark.python"
)
_EXCLUDED: Final = (
    "Spark has excluded every executor where this could run, as it has failed there; "
    "spark.excludeOnFailure decides how often it may, and this was the last failure:"
)
#: Texts of Spark when a task could not become a worker, and their meaning.
_CAUSES: Final = (
    (re.compile(r"(No module named '[\w.]+')"), _NO_GEARPY),
    (re.compile(r"PYTHON_VERSION_MISMATCH\]\s*(.*)"), _OTHER_PYTHON),
    (re.compile(r"due to node and executor excludeOnFailure\.\s*.*:\s*(.*)"), _EXCLUDED),
)
_OWN: Final = re.compile(r"^(?:gearpy\.errors\.)?ConfigError: (.+)$", re.MULTILINE)
_LINE: Final = re.compile(r"^(?:: |Caused by: )?[\w.$]*(?:Error|Exception)\w*: (.+)$", re.MULTILINE)
_CHARS_MAX: Final = 500


def cores_in(master: str, cores: int | None) -> int | None:
    """Return how many tasks of one core Spark runs at a time; None if that may change.

    Args:
        cores: of this machine under a local master, as `settings.cores_of` has it.
    """
    found = _LOCAL_CLUSTER.match(master)
    return int(found[1]) * int(found[2]) if found else cores


def refusal(*, workers: int, cores: int, has: int, masters: int = 0) -> str:
    """Return the reason why workers do not fit; empty if they do. Masters may take cores, too."""
    if workers * cores + masters <= has:
        return ""
    beside = f" beside {masters} masters" if masters else ""
    return f"{_asked(workers, cores)}{beside}, and Spark has {has}: {_FIX}"


def too_few(*, workers: int, cores: int, came: int, within_s: float) -> str:
    return (
        f"{_asked(workers, cores)}, and Spark has started {came} in {within_s:g} s: {_FIX}, or "
        "wait longer with timeout_s="
    )


_FIX: Final = (
    "ask for fewer workers, give Spark more executors or cores (spark.executor.instances, "
    "spark.executor.cores, spark.cores.max), or end the jobs that use them"
)


def _asked(workers: int, cores: int) -> str:
    return f"a cluster of {workers} x {cores} cores was asked for"


def cause_of(text: str) -> str:
    for pattern, meaning in _CAUSES:
        if found := pattern.search(text):
            return f"{meaning} ({found[1][:_CHARS_MAX].strip()})"
    if own := _OWN.findall(text):
        return str(own[-1])[:_CHARS_MAX]
    lines = _LINE.findall(text) or text.strip().splitlines() or ["Spark does not say why"]
    return str(lines[0])[:_CHARS_MAX]
