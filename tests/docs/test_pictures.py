"""The pictures in the documentation are those that the code of today draws."""

import re

from tests.docs.pictures import PAGES, PICTURES, page_with_pictures


def test_pictures_show_what_programs_put_out() -> None:
    """Who changes windows, triggers or joins sees it here: ``python -m tests.docs.pictures``."""
    shown = list[str]()
    for page in sorted(PAGES.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"<!-- picture: ([\w-]+) -->", text)
        assert not names or page_with_pictures(text) == text, f"{page.name} is out of date"
        shown += names

    assert sorted(shown) == sorted(PICTURES)
