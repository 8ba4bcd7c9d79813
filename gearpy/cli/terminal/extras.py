"""Adds extras to the environment of a clone when a command first needs them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gearpy.distribution import own_environment
from gearpy.errors import NotInstalled

#: How `bin/gear` starts Python; who has started it otherwise installs by other means.
_BY_SCRIPT: Final = ["-P", "-m", "gearpy"]
#: The extra that this command was started again for: what then lacks was not in it.
_TRIED: Final = "BIN_GEAR_ADDED"
_ADD: Final = 'set -euo pipefail; source "$0"; bootstrap "$1"'


@contextmanager
def setting_up() -> Iterator[None]:
    """Add the extra that is found to be missing, and start this command again.

    Only for steps that have done nothing yet, in a clone whose environment `bin/gear` has made.
    """
    try:
        yield
    except NotInstalled as error:
        made = own_environment()
        if made is None or not error.extra or sys.orig_argv[1:4] != _BY_SCRIPT:
            raise
        if os.environ.get(_TRIED) == error.extra:
            raise
        script = str(made.parent / "bin" / "_bootstrap")
        command = ["bash", "-c", _ADD, script, error.extra]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - our script
            raise
        os.environ[_TRIED] = error.extra
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this command
