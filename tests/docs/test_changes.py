"""A change brings its line of the changelog in a file of its own; a release gathers these."""

import re
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

CHANGES: Final = Path(__file__).parents[2] / "docs" / "changes"
GATHER: Final[Any] = runpy.run_path(str(CHANGES / "gather.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    changes = tmp_path / "changes"
    changes.mkdir()
    (changes / "b.added.md").write_text("- B.\n")
    (changes / "a.added.md").write_text("- A.\n")
    (changes / "c.security.md").write_text("- C.\n")
    return changes


def gather(folder: Path, before: str) -> str:
    page = folder.parent / "changelog.md"
    page.write_text(before)
    assert GATHER["main"](folder, page, "0.2.0", "2027-01-31") == 0
    return page.read_text()


def test_changes_go_below_the_headings_of_their_version(folder: Path) -> None:
    draft = "## 0.2.0 (not released)\n\nIn short.\n\n### Added\n\n- First.\n\n"

    after = gather(folder, f"# Changelog\n\n{draft}## 0.1.0 (2026-12-01)\n\n- Old.\n")

    assert after == (
        "# Changelog\n\n## 0.2.0 (2027-01-31)\n\nIn short.\n\n### Added\n\n- First.\n- A.\n- B.\n\n"
        "### Security\n\n- C.\n\n## 0.1.0 (2026-12-01)\n\n- Old.\n"
    )
    assert not [*folder.iterdir()]


@pytest.mark.parametrize("older", ["", "## 0.1.0 (2026-12-01)\n\n### Fixed\n\n- Old.\n"])
def test_a_version_without_a_section_gets_one(folder: Path, older: str) -> None:
    after = gather(folder, f"# Changelog\n\n{older}")

    section = "## 0.2.0 (2027-01-31)\n\n### Added\n\n- A.\n- B.\n\n### Security\n\n- C.\n\n"
    assert after.strip() == f"# Changelog\n\n{section}{older}".strip()


def test_a_kind_that_is_none_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (folder / "d.feature.md").write_text("- D.\n")

    assert GATHER["main"](folder, tmp_path / "changelog.md", "0.2.0", "2027-01-31") == 1
    assert "d.feature.md" in capsys.readouterr().err
    assert len([*folder.iterdir()]) == 4


def test_changes_are_items_of_a_known_kind_with_links_that_lead_somewhere() -> None:
    """They become part of a page of the folder above."""
    wrong = [
        path.name
        for path in CHANGES.glob("*.md")
        if GATHER["kind_of"](path) not in GATHER["KINDS"]
        or not path.read_text(encoding="utf-8").startswith("- ")
        or not all(
            (CHANGES.parent / link).exists()
            for link in re.findall(r"\]\(([^)#:\s]+)", path.read_text(encoding="utf-8"))
        )
    ]

    assert not wrong
