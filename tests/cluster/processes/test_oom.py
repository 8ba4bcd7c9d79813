"""What the files of the system say of processes that were killed for want of memory."""

from pathlib import Path

import pytest

from gearpy.cluster.processes.oom import OomKills

FIRST = ("9:cpu:/a\n4:memory:/workers\n0::/\n", "memory/workers", "memory.oom_control")
SECOND = ("0::/workers\n", "workers", "memory.events")
#: In a container the group is at the root of what is mounted.
MOUNTED = ("0::/elsewhere\n", "", "memory.events")


@pytest.mark.parametrize(("groups", "where", "file"), [FIRST, SECOND, MOUNTED])
def test_a_kill_in_the_own_group_names_its_limit(
    groups: str, where: str, file: str, tmp_path: Path
) -> None:
    folder = tmp_path / "cgroup" / where
    folder.mkdir(parents=True)
    limit = folder / ("memory.limit_in_bytes" if "oom" in file else "memory.max")
    (tmp_path / "groups").write_text(groups)
    (tmp_path / "vmstat").write_text("nr_free 1\noom_kill 7\n")

    def now(kills: int) -> OomKills:
        (folder / file).write_text(f"oom 5\noom_kill {kills}\n")
        return OomKills.now(tmp_path / "groups", tmp_path / "cgroup", tmp_path / "vmstat")

    limit.write_text("150000000\n")
    before = now(1)
    assert (before.in_group, before.anywhere) == (1, 7)
    assert now(1).why_since(before) == ""
    why = now(2).why_since(before)
    assert why.startswith("out of memory: the processes of its worker may have 150 MB together")
    assert str(limit) in why
    limit.write_text("max\n")
    assert now(2).why_since(before) == "out of memory"


def test_what_the_system_does_not_tell_is_nothing(tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert OomKills.now(none, none, none) == OomKills(0, 0)
    assert OomKills(0, 2).why_since(OomKills(0, 1)) == "maybe out of memory"
