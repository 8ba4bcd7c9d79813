"""Moves the changes beside it into the section of a version: ``bin/release changelog``."""

import re
import sys
from pathlib import Path
from typing import Final

#: The headings of a version, and ends of names of files: ``charts.added.md``.
KINDS: Final = ("Added", "Changed", "Fixed", "Security")


def main(folder: Path, page: Path, version: str, date: str) -> int:
    """Put all changes of a folder below their headings, and remove their files."""
    changes = sorted(folder.glob("*.md"))
    strange = [each.name for each in changes if kind_of(each) not in KINDS]
    if strange:
        ends = ", ".join(f".{kind.lower()}.md" for kind in KINDS)
        print(f"changelog: the name of a change ends with {ends}: {strange}", file=sys.stderr)
        return 1
    head, *sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = ""
    if sections and sections[0].startswith(f"## {version} (not released)\n"):
        lines = sections.pop(0).partition("\n")[2]
    intro, *parts = re.split(r"^### (.+)\n", lines, flags=re.MULTILINE)
    texts = dict(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))
    for kind in KINDS:
        new = [
            each.read_text(encoding="utf-8").strip() for each in changes if kind_of(each) == kind
        ]
        if old := texts.pop(kind, ""):
            new.insert(0, old)
        if new:
            texts[kind] = "\n".join(new)
    blocks = [f"## {version} ({date})", intro.strip()]
    blocks += (f"### {kind}\n\n{text}" for kind, text in texts.items())
    section = "\n\n".join(block for block in blocks if block) + "\n\n"
    page.write_text((head + section + "".join(sections)).rstrip() + "\n", encoding="utf-8")
    for each in changes:
        each.unlink()
    return 0


def kind_of(change: Path) -> str:
    """Return the heading that a file belongs below, by its name."""
    return change.name.removesuffix(".md").rpartition(".")[2].capitalize()


if __name__ == "__main__":
    FOLDER: Final = Path(__file__).parent
    sys.exit(main(FOLDER, FOLDER.parent / "changelog.md", *sys.argv[1:]))
