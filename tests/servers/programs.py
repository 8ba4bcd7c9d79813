"""Programs of Debian that tests start by themselves: Prometheus, and a browser."""

import os
import shutil
from typing import Final

from tests.servers.recipes import Unavailable, program, unpacked

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_SHELL: Final = "chromium-headless-shell"
_PROMETHEUS: Final = "prometheus"


def chromium() -> str:
    """Return a browser: that in ``GEARPY_CHROMIUM``, or one without windows; root installs it.

    One that draws windows for nobody takes three times the CPU.
    """
    if named := os.environ.get("GEARPY_CHROMIUM"):
        return named
    try:
        return program(_SHELL, package=_SHELL)
    except Unavailable:
        if found := next(filter(None, map(shutil.which, _BROWSERS)), None):
            return found
        raise


def prometheus(name: str = _PROMETHEUS) -> str:
    """Return a program of Prometheus, whose package is not installed: that starts a server."""
    return shutil.which(name) or str(unpacked(_PROMETHEUS) / "usr" / "bin" / name)
