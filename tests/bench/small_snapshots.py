"""``gear``, where masters write a snapshot after a few entries: ``python -m`` this module."""

from gearpy.cli.main import main
from gearpy.cluster.quorum import member

_ENTRIES = 20

if __name__ == "__main__":
    member.SNAPSHOT_ENTRIES = _ENTRIES  # type: ignore[misc]
    main()
