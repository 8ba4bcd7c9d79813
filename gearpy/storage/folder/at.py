"""The folder that a path or URL names."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from gearpy.config.hidden import without_password
from gearpy.distribution import not_installed
from gearpy.errors import ConfigError, NotInstalled
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.local import LocalFolder

#: A folder of this machine can do more than fsspec does: make files durable.
_LOCAL: Final = ("file://", "local://")
#: File systems of our own, by scheme, and the modules that have them.
_OWN: Final = {
    "webhdfs": "gearpy.storage.folder.webhdfs",
    "kafka": "gearpy.storage.folder.kafka",
}


def folder_at(
    where: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    key: str,
    private: bool = False,
) -> Folder:
    """Return the folder at a path or URL.

    Args:
        where: a path, or a URL that fsspec knows.
        options: of the store, as fsspec takes them.
        key: who wants it, for errors, such as ``checkpoint.folder``.
        private: whether a folder of this machine is for its owner only.

    Raises:
        ConfigError: the URL cannot be used here.
    """
    text = os.fspath(where)
    for scheme in _LOCAL:
        if text.startswith(scheme):
            text = text.removeprefix(scheme)
            if not text.startswith(("/", "~")):
                raise ConfigError(
                    f"{key} {where!r} does not name a folder of this machine: write "
                    f"{scheme}/path with three slashes, or the path alone"
                )
    if "://" not in text:
        return LocalFolder(text, private=private)
    # Here, as it is seldom needed and slow to import.
    url = import_module("gearpy.storage.folder.url")
    shown = without_password(text)
    try:
        with url.only_os_errors(NotInstalled, ValueError):
            files, path = file_system_at(text, options, needed_for=f"{key} {shown!r}")
    except ValueError as error:
        raise ConfigError(
            f"{key} {shown!r} cannot be used: {error}; choose another folder or URL"
        ) from error
    folder: Folder = url.UrlFolder(files, str(path))
    return folder


def file_system_at(
    url: str, options: Mapping[str, Any] | None = None, *, needed_for: str = ""
) -> tuple[Any, str]:
    """Return the file system of fsspec that a URL names, and the path on it."""
    scheme = url.partition("://")[0]
    try:
        if scheme in _OWN:
            import_module(_OWN[scheme]).register()
        files, path = import_module("fsspec.core").url_to_fs(url, **dict(options or {}))
    except ImportError as error:
        missing = getattr(error.__cause__, "name", "") or error.name or scheme
        raise not_installed(needed_for or without_password(url), missing) from error
    return files, str(path)
