"""``gear main``: runs a program of any kind, which finds the cluster by its environment."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

from gearpy.cli.terminal.options import Given, argument, takes
from gearpy.cluster.programs.targets import split_path
from gearpy.config.load import as_overrides, env_name

#: Calls a function of a module, with the arguments if it takes any.
_CALL: Final = """
import importlib, inspect, sys
module, name, *args = sys.argv[1:]
sys.argv[:] = [module, *args]
function = getattr(importlib.import_module(module), name, None)
if not callable(function):
    sys.exit(f"error: {module} has no function {name!r}")
takes_args = bool(inspect.signature(function).parameters)
if args and not takes_args:
    sys.exit(f"error: {module}:{name} takes no arguments, got {' '.join(args)}")
sys.exit(function(args) if takes_args else function())
"""


@takes("conf", "set_", "master", "verbose")
def main(
    given: Given,
    target: Annotated[
        str,
        argument(
            metavar="TARGET",
            help="FILE.py or MODULE, run as Python does; or either with :FUNCTION, which is "
            "called, with the list of arguments if it takes any.",
        ),
    ],
    args: Annotated[list[str] | None, argument(metavar="ARGS", help="For the program.")] = None,
) -> None:
    """Run a program of any kind that finds the cluster and its configuration.

    gp.connect() in it is the cluster of --master and --conf, and gp.load_config() has their keys;
    gp.run() runs an application in the program's own process, as always.
    """
    path, _, function = target.partition(":")
    is_file = Path(path).is_file()
    if not is_file and path.partition(".")[0] not in sys.stdlib_module_names:
        split_path(path)  # Refuses what is not there.
    command = [path] if is_file else ["-m", path]
    home = Path(path).resolve().parent if is_file else Path.cwd()
    if function:
        command = ["-c", _CALL, Path(path).stem if is_file else path, function]
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ,
        **{env_name(key): value for key, value in as_overrides(given.config()).items()},
        "PYTHONPATH": os.pathsep.join(paths),
    }
    words = args[1:] if args and args[0] == "--" else args or []
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *command, *words], env)  # noqa: S606 - theirs
