"""The process of a daemon, as others read of it."""

from pathlib import Path

from gearpy.cluster.host.about import this_process
from gearpy.config.schema import DEFAULTS


def test_folders_are_whole_paths() -> None:
    told = this_process(DEFAULTS, "127.0.0.1:3000", folder="~/.gearpy/master", logs="logs")

    assert told.folder == str(Path.home() / ".gearpy" / "master")
    assert told.log_folder == str(Path.cwd() / "logs")
    assert this_process(DEFAULTS, "127.0.0.1:3000").folder == ""
