"""Keys of the connections between processes; see `schema` for the others."""

from dataclasses import dataclass
from typing import Final, Literal

from gearpy.config.setting import setting

__all__ = ["TransportConfig"]

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    """Connections between processes."""

    secret_file: str = setting(
        "secret-file",
        "~/.gearpy/secret",
        "file",
        "The secret that all processes of a cluster share; who does not know it is not heard. "
        "A ~ is the user's home.",
        form="a path",
    )
    frame_max_bytes: int = setting(
        "frame-max-bytes",
        16 * _MIB,
        "bytes",
        "A data frame that claims to be larger ends the connection before memory is taken for it.",
        low=4 * _KIB,
        high=_KIB * _MIB,
    )
    control_frame_max_bytes: int = setting(
        "control-frame-max-bytes",
        _MIB,
        "bytes",
        "The same for control messages, which are small.",
        low=4 * _KIB,
        high=_KIB * _MIB,
    )
    handshake_timeout_ms: int = setting(
        "handshake-timeout-ms",
        3000,
        "ms",
        "A peer that has not proved itself after so long is disconnected.",
        low=10,
        high=60_000,
    )
    handshake_max_bytes: int = setting(
        "handshake-max-bytes",
        512,
        "bytes",
        "A peer that has not proved itself may send so much in one frame.",
        low=256,
        high=64 * _KIB,
    )
    unauthenticated_connections_max: int = setting(
        "unauthenticated-connections-max",
        64,
        "connections",
        "So many connections may be in the handshake at once; when one more comes the oldest is "
        "closed, so that strangers can neither exhaust a listener nor keep others out.",
        high=65_536,
    )
    write_buffer_bytes: int = setting(
        "write-buffer-bytes",
        _MIB,
        "bytes",
        "A busy connection gathers up to so much for one write. Larger saves system calls and "
        "costs latency.",
        low=4 * _KIB,
        high=_KIB * _MIB,
    )
    reconnect_base_ms: int = setting(
        "reconnect-base-ms",
        100,
        "ms",
        "Pause before the first attempt to connect again; it grows, with jitter, with each "
        "that follows.",
        high=60_000,
    )
    reconnect_max_ms: int = setting(
        "reconnect-max-ms",
        1000,
        "ms",
        "The pause between attempts to connect grows up to this.",
        high=600_000,
    )
    reconnect_retries: int = setting(
        "reconnect-retries",
        30,
        "attempts",
        "After so many failed attempts in a row the peer counts as lost.",
        low=0,
        high=1_000_000,
    )
    queue_max_bytes: int = setting(
        "queue-max-bytes",
        256 * _MIB,
        "bytes",
        "What may wait for one connection; above it messages are dropped, and found missing.",
        low=_KIB,
        high=64 * 1024 * _MIB,
    )
    close_timeout_ms: int = setting(
        "close-timeout-ms",
        1000,
        "ms",
        "What a peer has not read so long after a connection was closed is given up.",
        high=_DAY_MS,
    )
    tls: Literal["off", "on"] = setting(
        "tls",
        "off",
        "switch",
        "on: every connection is encrypted, and both ends show a certificate of the cluster's own "
        "authority. Needed to listen beyond this machine, unless plain text is allowed.",
        choices=("off", "on"),
    )
    tls_folder: str = setting(
        "tls-folder",
        "~/.gearpy/certs",
        "folder",
        "Certificates and key made by `gear certs init`. A ~ is the user's home.",
        form="a path",
    )
    plain_text: Literal["loopback", "anywhere"] = setting(
        "plain-text",
        "loopback",
        "switch",
        "anywhere: also listen on other addresses without encryption, on a network that you trust.",
        choices=("loopback", "anywhere"),
    )
    gil_switch_interval_us: int = setting(
        "gil-switch-interval-us",
        1000,
        "us",
        "How long a thread may keep the interpreter while others wait. The loop thread waits so "
        "long for a busy task; Python's own default is 5000.",
        low=50,
        high=100_000,
    )
