"""Programs in the folders of three masters: kept while an application may need them."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually
from tests.system.cluster_build import gear

_WITHIN_S: Final = 60.0
_QUOTA: Final = 20_000
_HASTY: Final = "tests.system.hasty_master"

#: Counts for ever.
_PROGRAM: Final = """\
from itertools import count
import gearpy as gp

def main(args):
    app = gp.StreamApp(args[0])
    out = gp.jsonl_folder({results!r} + "/" + args[0])
    app.read(gp.generate(count, rate=50)).map(str).write(out)
    return app
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "results").mkdir()
        self.cluster = ProcessCluster(
            folder,
            masters=3,
            workers=1,
            settings={"artifact.quota-bytes": str(_QUOTA), "artifact.keep-ended": "0"},
            master_module=_HASTY,
            master_env=lambda *_: {"PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def program(self, name: str, comment: str = "") -> Path:
        path = self.folder / f"{name}.py"
        text = _PROGRAM.format(results=str(self.folder / "results"))
        path.write_text(f"# {name} {comment}\n{text}", encoding="utf-8")
        return path

    def gear(self, *args: str, code: int = 0) -> str:
        return gear(*args, settings=self.cluster.settings, code=code)

    def stored(self) -> set[str]:
        return {each.name for each in self.folder.glob("master*/artifacts/*")}

    def told(self) -> int:
        """Return how many programs the masters say that they have, all together."""
        masters: list[dict[str, Any]] = json.loads(self.gear("master", "status", "--json"))[
            "masters"
        ]
        return sum(each["disk"]["programs"] for each in masters if each["disk"])


@pytest.mark.long
def test_masters_keep_the_programs_that_applications_need_and_no_others(tmp_path: Path) -> None:
    """Each master by what it knows of the log; an application with two versions needs both."""
    scene = Scene(tmp_path)
    with scene.cluster as cluster:
        living = cluster.submit(scene.program("lives"), "lives", executors=1)
        eventually(lambda: "active" in scene.gear("app", "list"), within_s=_WITHIN_S, every_s=0.2)
        version = scene.program("lives", "version 1")
        scene.gear("app", "update", str(living), str(version), "--", "lives")
        needed = scene.stored()
        assert len(needed) == 2

        # It was uploaded before its name was refused.
        stray = str(scene.program("stray"))
        assert "already active" in scene.gear("app", "submit", stray, "--", "lives", code=2)
        eventually(lambda: scene.stored() == needed, within_s=_WITHIN_S, every_s=0.2)
        assert 4 <= scene.told() <= 6  # Of three masters, two or three were given each.
        scene.gear("app", "rollback", str(living), "0")

        too_large = str(scene.program("large", "x" * _QUOTA))
        text = scene.gear("app", "submit", too_large, "--", "large", code=2)
        assert "artifact.quota-bytes is 20.0 kB" in text
        assert f"application {living} (lives), which is active" in text

        scene.gear("app", "kill", str(living))
        eventually(lambda: not scene.stored(), within_s=_WITHIN_S, every_s=0.2)
        assert "artifact.keep-ended" in scene.gear("app", "restart", str(living), code=2)
