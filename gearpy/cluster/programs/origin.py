"""The target by which an application of this process is submitted: its file, and its name there."""

import sys
from pathlib import Path
from typing import Any, Final

from gearpy.errors import ConfigError

_MAIN: Final = "__main__"


def target_of(app: Any) -> str:
    modules = dict(sys.modules)
    own = [modules[_MAIN], *(each for name, each in modules.items() if name != _MAIN)]
    for module in own:
        names = [name for name, value in list(vars(module).items()) if value is app]
        if name := next((name for name in names if not name.startswith("_")), ""):
            file = getattr(module, "__file__", None)
            if file is None or not Path(file).is_file():
                raise ConfigError(
                    f"{name} is an application of a session without a file, such as a notebook: "
                    "write the program into a file (%%writefile program.py), and submit_program it"
                )
            package = (module.__package__ or "").partition(".")[0]
            if not package:
                return f"{file}:{name}"
            top = Path(next(iter(sys.modules[package].__path__)))
            shown = module.__name__ if module.__name__ != _MAIN else Path(file).stem
            return f"{top}:{shown}:{name}"
    raise ConfigError(
        f"{app!r} cannot be submitted: a cluster imports the program's file and looks for the "
        "application there; make it a variable at the top of a module, or submit a function that "
        'makes it: submit_program("program.py:main")'
    )
