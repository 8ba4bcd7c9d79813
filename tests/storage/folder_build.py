"""Folders at URLs for tests."""

from typing import Any

from fsspec.core import url_to_fs  # type: ignore[import-untyped]

from gearpy.storage.folder.url import UrlFolder


def url_folder(url: str, **options: Any) -> UrlFolder:
    """Return the folder at a URL, also at one of a file."""
    files, path = url_to_fs(url)
    return UrlFolder(files, path, **options)
