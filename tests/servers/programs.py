"""Programs of Debian that tests start by themselves: Prometheus, and a browser."""

import os
import shutil
from typing import Final

from tests.servers.recipes import program, unpacked

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_PROMETHEUS: Final = "prometheus"


def chromium() -> str:
    """Return a browser: that in ``GEARPY_CHROMIUM``, or one on PATH; root installs it."""
    named = os.environ.get("GEARPY_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _BROWSERS)), None)
    return found or program("chromium", package="chromium")


def prometheus(name: str = _PROMETHEUS) -> str:
    """Return a program of Prometheus, whose package is not installed: that starts a server."""
    return shutil.which(name) or str(unpacked(_PROMETHEUS) / "usr" / "bin" / name)
