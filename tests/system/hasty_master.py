"""A gearpy whose masters look for programs that nobody needs all the time, and do not wait long."""

from gearpy.cli.main import main
from gearpy.cluster.master import programs
from gearpy.cluster.quorum import spread
from gearpy.storage.artifacts import ArtifactStore

if __name__ == "__main__":
    setattr(programs, "_SWEEP_MS", 100)  # noqa: B010 - mypy refuses the other
    setattr(spread, "_REMEMBERED_S", 0.5)  # noqa: B010 - the same
    defaults = ArtifactStore.__init__.__kwdefaults__
    assert defaults is not None
    defaults["grace_ms"] = 2_000
    main()
