"""Folders of JSON lines in which readers see each record once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Unpack

from gearpy.connectors.files.writers import json_lines
from gearpy.connectors.folders.writer import FolderOptions, FolderSink, PartFormat, RowWriter
from gearpy.connectors.shared_options import check_options, takes
from gearpy.task.api.interfaces import Sink

_NAME: Final = "jsonl_folder"


@takes(FolderOptions, FolderSink)
def jsonl_folder(path: str | Path, **options: Unpack[FolderOptions]) -> Sink:
    r"""Write each record as a line of JSON into a folder: exactly once, whatever fails.

    Each task writes a file for each epoch that brings it records. A file is committed when its
    epoch is complete: until then it is below ``_pending``, which Spark, Hive and Arrow pass over,
    as does ``ls *.jsonl``. So readers see every record of a complete epoch once and nothing else,
    and a task's files in the order of their names. Only when a checkpoint turns out to be damaged,
    and the application goes back before what it has committed, do files vanish again; this is
    logged.

    An epoch lasts a second by default, which makes many small files: with
    ``checkpoint.interval-ms = 60000`` there is one a minute, and readers wait that long. A program
    that merges or removes files must leave alone those of the last few epochs
    (``checkpoint.retained`` and one more), as a restart looks for them.

    Files of earlier runs stay, so a program that is started again adds to them. With
    ``overwrite`` they are removed when the first epoch begins, before anything new is committed;
    other files in the folder are never touched.

    Records become JSON as by `jsonl_file`.

    Args:
        path: the folder, which is made if the one above exists, or a URL such as
            ``s3://bucket/out``; on a cluster all machines must see the same.
        options: those that all folders share, see `FolderOptions`.

    Raises:
        ConfigError: the prefix cannot begin names of files.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> app = gp.StreamApp("objects")
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.jsonl_folder("objects"))
        >>> _ = gp.run(app)
        >>> "".join(file.read_text() for file in sorted(Path("objects").glob("*.jsonl")))
        '{"n":1}\n{"n":2}\n'
    """
    check_options(_NAME, options, FolderOptions)
    return FolderSink(_NAME, path, JsonFolderFormat, columnar=True, **options)


class JsonFolderFormat(PartFormat):
    ending = ".jsonl"

    def begin(self, file: BinaryIO) -> "_JsonLines":
        return _JsonLines(file)


class _JsonLines(RowWriter):
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, values: Sequence[Any]) -> bool:
        self._file.write(json_lines(_NAME, values))
        return True
