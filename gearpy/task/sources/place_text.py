"""Places in the input of a source, as people read them."""

import json
from collections.abc import Mapping
from typing import Any

from gearpy.errors import ProtocolError
from gearpy.task.api.snapshots import decode_state

_SHOWN_CHARS = 200


def stored_place_text(partition: str, data: bytes) -> str:
    try:
        return place_text(partition, decode_state(data))
    except ProtocolError:  # It has classes of the program.
        return f"{partition}, at {data!r:.{_SHOWN_CHARS}}"


def place_text(partition: str, place: Any) -> str:
    """Say where the next record of a partition is, by the snapshot of its reader.

    Files and brokers are named in their own terms, other places as they are.
    """
    match place:
        case None:
            return f"the beginning of {partition}"
        case {"file": str(file), "place": inner}:
            return _place_in_file(file, inner) if file else f"the next file of {partition}"
        case {"offset": int(offset), "end": _}:
            return f"{partition}, offset {offset}"
        case {"offset": int(offset)}:
            return f"{partition}, byte {offset}"
        case {"position": int(position)}:
            return f"{partition}, record {position + 1}"
    shown = place
    if isinstance(place, Mapping):
        shown = {name: each for name, each in place.items() if name != "watermark_ms"}
    text = json.dumps(shown, ensure_ascii=False, default=repr)
    return f"{partition}, at {text:.{_SHOWN_CHARS}}"


def record_text(partition: str, before: Any, after: Any) -> str:
    """Say where the record is that was read alone between two places."""
    match after:
        case {"file": str(file), "place": {"line": int(line), "row": 0}} if file:
            return f"{file}, line {line - 1}"
    return place_text(partition, before)


def _place_in_file(file: str, place: Any) -> str:
    match place:
        case {"line": int(line), "row": 0}:
            return f"{file}, line {line}"
        case {"line": int(line), "row": int(row)}:
            return f"{file}, about line {line + row}"  # Not all lines need be rows.
        case {"group": int(group), "row": int(row)}:
            return f"{file}, row {row} of group {group}"
    return f"the beginning of {file}"
