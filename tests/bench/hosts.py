"""Machines of their own: network namespaces with names and addresses, joined by a router.

As on most Linux machines, the name of each means 127.0.1.1 there, and elsewhere its true address.
Needs root and the programs ``ip`` and ``unshare``; everything is gone when the context ends, also
by SIGTERM. What a process has left that was killed, the next one removes.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

_NAMESPACES: Final = Path("/run/netns")
_CLONE_NEWNET: Final = 0x40000000
#: Names of namespaces begin with this, who has made them, and when that began.
_TAG: Final = re.compile(r"(gp(\d+)-\d+)-.+")
_BEGAN: Final = 19  # The place of this in what /proc tells of a process, behind its name.
#: Runs a command where the machine has its own name, and its own names of others.
_ON_HOST: Final = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'


def why_no_hosts() -> str:
    """Return why there can be no such machines here; empty if there can."""
    if missing := [each for each in ("ip", "unshare", "mount") if shutil.which(each) is None]:
        return f"no program {', '.join(missing)}"
    name = f"{_tag_of(os.getpid())}-try"
    try:
        _ip("netns", "add", name)
        try:
            _ip("-n", name, "link", "add", "here", "type", "veth", "peer", "name", "there")
            _ip("-n", name, "rule", "add", "from", "10.77.1.2", "to", "10.77.2.2", "blackhole")
        finally:
            _ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        return f"this machine makes no network namespaces: {said}"
    return ""


def enter(namespace: str) -> None:
    """Let all sockets that this thread makes from now on be in a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (_NAMESPACES / namespace).open() as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


class Hosts:
    """Machines by name. Use as a context manager.

    Args:
        tag: that of the process that has made them; the own one if not given.
    """

    def __init__(self, folder: Path, names: Sequence[str], tag: str = "") -> None:
        self._folder = folder
        self.tag = tag or _tag_of(os.getpid())
        self.router = f"{self.tag}-router"
        self.addresses = {name: f"10.77.{number}.2" for number, name in enumerate(names, 1)}
        #: For each machine an address of the router, where something may listen in its place.
        self.places = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}
        self._cuts: set[tuple[str, str]] = set()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        self._folder.mkdir()
        _remove_leftovers()
        self._opened.enter_context(_sigterm_as_interrupt())
        try:
            _ip("netns", "add", self.router)
            _ip("-n", self.router, "link", "set", "lo", "up")
            forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
            _run("ip", "netns", "exec", self.router, "sh", "-c", forward)
            for name in self.addresses:
                self._add(name)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def namespace(self, name: str) -> str:
        return f"{self.tag}-{name}"

    def know(self, name: str, others: Mapping[str, str] | None = None) -> None:
        """Let a machine know the addresses of all; of some, others than they have."""
        known = {"localhost": "127.0.0.1", **self.addresses, name: "127.0.1.1", **(others or {})}
        lines = "".join(f"{address} {each}\n" for each, address in known.items())
        (self._folder / name).write_text(lines, encoding="utf-8")

    def on(self, name: str) -> list[str]:
        namespace, names = self.namespace(name), str(self._folder / name)
        run = ["ip", "netns", "exec", namespace, "unshare", "--uts", "sh", "-c", _ON_HOST]
        return [*run, names, name]

    # -- what can happen to them -----------------------------------------------------------

    def cut(self, ones: Iterable[str], others: Iterable[str]) -> None:
        """Let no packet come from some machines to others; nobody is told."""
        pairs = {(one, other) for one in ones for other in others if one != other} - self._cuts
        for one, other in pairs:
            self._rule("add", one, other)
        self._cuts |= pairs

    def unplug(self, name: str) -> None:
        _ip("-n", self.router, "link", "set", name, "down")

    def heal(self) -> None:
        for one, other in self._cuts:
            self._rule("del", one, other)
        self._cuts.clear()
        for name in self.addresses:
            _ip("-n", self.router, "link", "set", name, "up")

    def signal(self, name: str, number: int) -> None:
        _signal_all(self.namespace(name), number)

    # -- inside ----------------------------------------------------------------------------

    def _add(self, name: str) -> None:
        namespace, address = self.namespace(name), self.addresses[name]
        gateway = f"{address.rpartition('.')[0]}.1"
        _ip("netns", "add", namespace)
        cable = ("type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("-n", self.router, "link", "add", name, *cable)
        _ip("-n", self.router, "addr", "add", f"{gateway}/24", "dev", name)
        _ip("-n", self.router, "link", "set", name, "up")
        _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", namespace, "link", "set", "lo", "up")
        _ip("-n", namespace, "link", "set", "eth0", "up")
        _ip("-n", namespace, "route", "add", "default", "via", gateway)
        _ip("-n", self.router, "addr", "add", f"{self.places[name]}/32", "dev", "lo")
        self.know(name)

    def _rule(self, act: str, one: str, other: str) -> None:
        pair = ("from", self.addresses[one], "to", self.addresses[other])
        _ip("-n", self.router, "rule", act, *pair, "blackhole")

    def _remove(self) -> None:
        with self._opened:
            _remove([*map(self.namespace, self.addresses), self.router])


def _tag_of(pid: int) -> str:
    """Return the tag of a process that lives; another one with its number has another."""
    began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_BEGAN]
    return f"gp{pid}-{began}"


def _remove_leftovers() -> None:
    names = [each.name for each in _NAMESPACES.iterdir()] if _NAMESPACES.is_dir() else []
    _remove(name for name in names if _is_leftover(name))


def _is_leftover(namespace: str) -> bool:
    found = _TAG.fullmatch(namespace)
    if found is None:
        return False
    tag, pid = found.groups()
    with suppress(OSError):
        return _tag_of(int(pid)) != tag
    return True


def _remove(namespaces: Iterable[str]) -> None:
    for namespace in namespaces:
        with suppress(subprocess.CalledProcessError):
            _signal_all(namespace, signal.SIGKILL)
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "del", namespace)


def _signal_all(namespace: str, number: int) -> None:
    for pid in _ip("netns", "pids", namespace).split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), number)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """End by SIGTERM as by Ctrl-C, so that nothing is left; on the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
