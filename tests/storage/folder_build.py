"""Folders at URLs for tests."""

from typing import Any, Final, TypeAlias
from uuid import uuid4

import pytest
from fsspec.core import url_to_fs  # type: ignore[import-untyped]

from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.url import UrlFolder
from tests.servers.azure import AzureAddress
from tests.servers.gcs import GcsAddress
from tests.servers.hdfs import HdfsAddress
from tests.servers.kafka import KafkaAddress
from tests.servers.s3 import S3Address

#: Real servers, by the fixtures that start them.
REAL: Final = (
    *("s3", "hdfs"),
    *(pytest.param(each, marks=pytest.mark.long) for each in ("gcs", "azure")),
)
#: And those that have no folders that sinks could write to.
REAL_CHECKPOINTS: Final = (*REAL, "kafka")

_Address: TypeAlias = S3Address | GcsAddress | AzureAddress | HdfsAddress | KafkaAddress


def url_folder(url: str, **options: Any) -> UrlFolder:
    files, path = url_to_fs(url)
    return UrlFolder(files, path, **options)


def real_url(server: str, request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Return the URL of a new folder on a real server, and its storage options."""
    address: _Address = request.getfixturevalue(server)
    if isinstance(address, KafkaAddress):
        return f"kafka://{address.plain}/{uuid4().hex}", {}
    if isinstance(address, HdfsAddress):
        return f"webhdfs://root@{address.web}/{uuid4().hex}/folder", {}
    return f"{address.make_bucket()}/folder", address.options


def real_folder(server: str, request: pytest.FixtureRequest) -> UrlFolder:
    return folder_at_url(*real_url(server, request))


def folder_at_url(url: str, options: dict[str, Any]) -> UrlFolder:
    made = folder_at(url, options, key="folder")
    assert isinstance(made, UrlFolder)
    return made
