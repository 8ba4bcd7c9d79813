"""A network with faults, in user land: proxies that stand between endpoints and harm what passes.

It knows how gearpy's frames are cut, so that it can lose, repeat and swap whole ones, whose
checksums are right; other faults hit any byte.
"""

import asyncio
import ctypes
import random
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Self, TypeVar

from gearpy.transport.api import split_address
from gearpy.wire.connection.auth import CHALLENGE_BYTES, HELLO_BYTES, PROOF_BYTES
from gearpy.wire.connection.frames import HEADER_BYTES

_T = TypeVar("_T")
_READ_BYTES: Final = 65_536
_PIECE_BYTES: Final = 2048  # What a slow network carries at once.
_QUEUE_MAX: Final = 64
_SWAP_S: Final = 0.1
_SETTLE_S: Final = 0.002
_WAIT_S: Final = 10.0


class Fault(Enum):
    """What can happen to a frame, and to the connection that it is on."""

    FLIP = auto()  #: One bit of it.
    DROP = auto()  #: It is lost, what follows is not.
    DUPLICATE = auto()  #: It comes twice.
    SWAP = auto()  #: It comes after the next one, or after a while.
    REPEAT = auto()  #: Some bytes of it come twice.
    DELAY = auto()  #: It waits, and all behind it.
    TRUNCATE = auto()  #: Some bytes of it come, then nothing any more; all is acknowledged.
    SWALLOW = auto()  #: Nothing comes any more in this direction; all is acknowledged.
    BLACK_HOLE = auto()  #: No packet passes, none is acknowledged: the cable is cut.
    RESET = auto()  #: Some bytes of it come, then both ends get an RST.
    CLOSE = auto()  #: The same, with a FIN.


#: After these nothing tells the endpoints that the connection is of no use.
SILENT: Final = frozenset({Fault.TRUNCATE, Fault.SWALLOW, Fault.BLACK_HOLE})


class Way(Enum):
    THERE = auto()  #: From who has connected to who listens.
    BACK = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    latency_ms: int = 0
    bytes_per_s: int = 0  #: 0: as fast as it can.


class Network:
    """The thread on which all proxies of a test work. Use as a context manager."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.done: Counter[Fault] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.proxies: list[FaultProxy] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for proxy in self.proxies:
            self.run(proxy.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_S)
        self._loop.close()

    def proxy(
        self, target: str, *, frames: bool = True, address: str = "127.0.0.1:0"
    ) -> "FaultProxy":
        """Return a new way to a target. Without ``frames``: cut as they come, as with TLS."""
        proxy = FaultProxy(self, target, address, frames=frames)
        self.run(proxy.start())
        self.proxies.append(proxy)
        return proxy

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_WAIT_S)

    def call(self, act: Callable[[], object]) -> None:
        async def acting() -> None:
            act()

        self.run(acting())


class FaultProxy:
    """Listens at ``address`` and carries to ``target``, with the faults that it is told."""

    def __init__(self, network: Network, target: str, address: str, *, frames: bool) -> None:
        self.target = target
        self.address = address
        self.shape = Shape()
        self.accepted = 0
        self.done: Counter[Fault] = Counter()
        self.delay_s = 0.1
        self.frames = frames
        self.network = network
        self.armed: dict[Way, deque[tuple[Fault, Future[None]]]] = {way: deque() for way in Way}
        self.early: dict[Way, deque[tuple[Fault, Future[None]]]] = {way: deque() for way in Way}
        self.swallowed: set[Way] = set()
        self._carried: set[_Carried] = set()
        self._carrying: dict[asyncio.Task[None], socket.socket] = {}
        self._listener: socket.socket
        self._is_unplugged = False

    # -- what tests call -------------------------------------------------------------------

    def inject(
        self, fault: Fault, way: Way = Way.THERE, *, handshake: bool = False
    ) -> "Future[None]":
        """Let the next frame, or message of a handshake, have this fault; says when it had it."""
        done: Future[None] = Future()
        armed = self.early if handshake else self.armed
        self.network.call(lambda: armed[way].append((fault, done)))
        return done

    def disarm(self) -> None:
        for armed in self.armed.values():
            self.network.call(armed.clear)

    def cut(self) -> None:
        """Reset all connections; new ones may follow."""
        self.network.call(self._cut)

    def unplug(self) -> None:
        """Let no packet through any more, and nobody connect; no one is told."""
        self.network.call(lambda: self._set_plugged(plugged=False))

    def plug_in(self) -> None:
        """Undo `unplug` and `swallow`; what was not acknowledged is sent again by the system."""
        self.network.call(lambda: self._set_plugged(plugged=True))

    def swallow(self, way: Way) -> None:
        """Carry nothing in this direction, acknowledge all; of every connection."""
        self.network.call(lambda: self.swallowed.add(way))

    # -- on the network's thread -----------------------------------------------------------

    async def start(self) -> None:
        self._listener = socket.create_server(split_address(self.address))
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()
        self.address = f"{host}:{port}"
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def stop(self) -> None:
        """Listen no more, and reset all; may be called twice."""
        if self._listener.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        self._cut()
        carrying = dict(self._carrying)
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
        for sock in carrying.values():
            sock.close()
        await asyncio.sleep(_SETTLE_S)  # Sockets are closed in the turns after this one.

    def note(self, fault: Fault, done: "Future[None]") -> None:
        self.done[fault] += 1
        self.network.done[fault] += 1
        done.set_result(None)

    def _cut(self) -> None:
        for each in list(self._carried):
            each.reset()

    def _set_plugged(self, *, plugged: bool) -> None:
        self._is_unplugged = not plugged
        self.swallowed.clear()
        act = _let_through if plugged else _drop_all
        act(self._listener)
        for each in self._carried:
            each.on_sockets(act)

    def _accept(self) -> None:
        with suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            self.accepted += 1
            task = asyncio.ensure_future(self._carry(sock))
            self._carrying[task] = sock
            task.add_done_callback(self._carrying.pop)

    async def _carry(self, sock: socket.socket) -> None:
        with sock:
            try:
                far = await asyncio.open_connection(*split_address(self.target))
            except OSError:
                return
            near = await asyncio.open_connection(sock=sock)
            await self._carry_streams(near, far)

    async def _carry_streams(self, near: "_Streams", far: "_Streams") -> None:
        carried = _Carried(self, near, far)
        self._carried.add(carried)
        if self._is_unplugged:
            carried.on_sockets(_drop_all)
        try:
            await carried.carry()
        finally:
            self._carried.discard(carried)


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Carried:
    def __init__(self, proxy: FaultProxy, near: _Streams, far: _Streams) -> None:
        self._proxy = proxy
        self._reader = {Way.THERE: near[0], Way.BACK: far[0]}
        self._writer = {Way.THERE: far[1], Way.BACK: near[1]}
        self._pumps: list[asyncio.Task[None]] = []
        self._swallows: set[Way] = set()
        self._swapped: dict[Way, bytes] = {}

    async def carry(self) -> None:
        queues: dict[Way, asyncio.Queue[_Item]] = {way: asyncio.Queue(_QUEUE_MAX) for way in Way}
        pumps = [self._read(way, queues[way]) for way in Way]
        pumps += [self._write(way, queues[way]) for way in Way]
        self._pumps = [asyncio.ensure_future(pump) for pump in pumps]
        try:
            await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)
            for writer in self._writer.values():
                writer.close()
            for writer in self._writer.values():
                with suppress(OSError):
                    await writer.wait_closed()
        finally:  # Also when the test ends amid all that.
            for pump in self._pumps:
                pump.cancel()
            for writer in self._writer.values():
                writer.transport.abort()

    def reset(self) -> None:
        for writer in self._writer.values():
            sock = writer.get_extra_info("socket")
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        for pump in self._pumps:
            pump.cancel()

    def on_sockets(self, act: Callable[[Any], None]) -> None:
        for writer in self._writer.values():
            act(writer.get_extra_info("socket"))

    async def _read(self, way: Way, queue: "asyncio.Queue[_Item]") -> None:
        cutter = _Cutter(way, frames=self._proxy.frames)
        with suppress(OSError):
            while data := await self._next(way, queue):
                for unit, is_frame in cutter.feed(data):
                    for item in self._harmed(way, unit, is_frame=is_frame):
                        await queue.put(item)
        await queue.put(_Item(b"", end="close"))
        await asyncio.Event().wait()  # The writer ends it.

    async def _next(self, way: Way, queue: "asyncio.Queue[_Item]") -> bytes:
        """Read; a frame that waits to be swapped goes on if nothing more comes."""
        reading = self._reader[way].read(_READ_BYTES)
        if way not in self._swapped:
            return await reading
        try:
            return await asyncio.wait_for(reading, _SWAP_S)
        except TimeoutError:
            await queue.put(_Item(self._swapped.pop(way)))
            return await self._reader[way].read(_READ_BYTES)

    async def _write(self, way: Way, queue: "asyncio.Queue[_Item]") -> None:
        writer, loop = self._writer[way], asyncio.get_running_loop()
        with suppress(OSError):
            while True:
                item = await queue.get()
                due_s = item.at_s + item.delay_s + self._proxy.shape.latency_ms / 1000
                await asyncio.sleep(max(0.0, due_s - loop.time()))
                await self._send(writer, item.data)
                if item.end == "reset":
                    self.reset()
                if item.end:
                    return

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        per_s = self._proxy.shape.bytes_per_s
        step = _PIECE_BYTES if per_s else max(1, len(data))
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        for at in range(0, len(data), step):
            piece = data[at : at + step]
            writer.write(piece)
            await writer.drain()
            if per_s:  # A pause that was too long on a busy machine is made good by the next one.
                due_s += len(piece) / per_s
                await asyncio.sleep(max(0.0, due_s - loop.time()))

    def _harmed(self, way: Way, unit: bytes, *, is_frame: bool) -> "list[_Item]":
        if way in self._swallows | self._proxy.swallowed:
            return []
        armed = (self._proxy.armed if is_frame else self._proxy.early)[way]
        after = [_Item(self._swapped.pop(way))] if way in self._swapped else []
        if not armed:
            return [_Item(unit), *after]
        fault, done = armed.popleft()
        items = self._hit(fault, way, unit)
        self._proxy.note(fault, done)
        return [*items, *after]

    def _hit(self, fault: Fault, way: Way, unit: bytes) -> "list[_Item]":  # noqa: PLR0911
        rng = self._proxy.network.rng
        start = unit[: rng.randrange(len(unit))]
        match fault:
            case Fault.FLIP:
                flipped = bytearray(unit)
                flipped[rng.randrange(len(unit))] ^= 1 << rng.randrange(8)
                return [_Item(bytes(flipped))]
            case Fault.DROP:
                return []
            case Fault.DUPLICATE:
                return [_Item(unit), _Item(unit)]
            case Fault.REPEAT:
                # A whole frame that comes twice may be done without; some bytes of it may not.
                return [_Item(unit), _Item(start or unit[:1])]
            case Fault.SWAP:
                self._swapped[way] = unit
                return []
            case Fault.DELAY:
                return [_Item(unit, delay_s=self._proxy.delay_s)]
            case Fault.TRUNCATE | Fault.SWALLOW:
                self._swallows.add(way)
                return [_Item(start)] if fault is Fault.TRUNCATE else []
            case Fault.BLACK_HOLE:
                self._swallows.update(Way)
                self.on_sockets(_drop_all)
                return []
            case Fault.RESET:
                return [_Item(start, end="reset")]
            case Fault.CLOSE:
                return [_Item(start, end="close")]


class _Item:
    def __init__(self, data: bytes, *, delay_s: float = 0.0, end: str = "") -> None:
        self.data, self.delay_s, self.end = data, delay_s, end
        self.at_s = asyncio.get_running_loop().time()


class _Cutter:
    """Cuts one direction of a connection into the handshake and frames."""

    def __init__(self, way: Way, *, frames: bool) -> None:
        self._sizes = [HELLO_BYTES if way is Way.THERE else CHALLENGE_BYTES, PROOF_BYTES]
        self._frames = frames
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Return the units that are complete, and whether each is a frame."""
        if not self._frames:
            yield data, True
            return
        self._held += data
        while (size := self._size()) and size <= len(self._held):
            is_frame = not self._sizes
            if self._sizes:
                self._sizes.pop(0)
            unit = bytes(self._held[:size])
            del self._held[:size]
            yield unit, is_frame

    def _size(self) -> int:
        """Return the size of the next unit, 0 if it is not known."""
        if self._sizes:
            return self._sizes[0]
        if len(self._held) < HEADER_BYTES:
            return 0
        return HEADER_BYTES + int.from_bytes(self._held[:4], "little")


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


_SO_ATTACH_FILTER: Final = 26
_SO_DETACH_FILTER: Final = 27
_RETURN_0: Final = _Instruction(0x06, 0, 0, 0)  # Keep nothing of a packet.


def _drop_all(sock: Any) -> None:
    """Let the system drop, unseen, all packets that come for a socket."""
    program = struct.pack("@HP", 1, ctypes.addressof(_RETURN_0))
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def _let_through(sock: Any) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
