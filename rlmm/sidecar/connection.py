"""
One connection: receives requests, answers them in turns, and writes the answers together.

A turn ends after a number of requests, bytes of answers or milliseconds; until the rest is answered
nothing more is read, nor while the client does not take its answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import PartFailed, ProtocolError, RlmmError, TooBusy
from rlmm.sidecar.session import ClientSession
from rlmm.sidecar.socket_reads import BY_LOOP, NO_FILE
from rlmm.sidecar.waiting_requests import ResumedRead, WaitingRequests, result_of
from rlmm.wire.framing import HEAD_BYTES, FrameReader, length_at
from rlmm.wire.messages import answer_frame, id_of, read_request, refusal_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.access.roles import Peer
    from rlmm.sidecar.session import SessionContext
    from rlmm.sidecar.socket_reads import SocketReaders

_log = logging.getLogger(__name__)

HELLO_BYTES_MAX: Final = 64 * 1024
TURN_S: Final = 0.002
"""How long the requests of one connection may take before others have their turn."""


class ClientConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_closing", "_context", "_entered", "_fd", "_figures", "_frame_bytes_max", "_frames",
        "_held_bytes", "_is_last", "_is_turn_due", "_later", "_left", "_line", "_loop", "_peer_of",
        "_readers", "_session", "_transport", "_waits", "_whole_bytes_max", "blocked_s",
        "closing_s", "heard_s",
    )  # fmt: skip

    def __init__(
        self,
        context: SessionContext,
        peer_of: Callable[[asyncio.Transport], Peer],
        entered: Callable[[ClientConnection], bool],
        left: Callable[[ClientConnection], None],
        readers: SocketReaders | None = None,
    ) -> None:
        """
        *entered* returns whether there is room; *left* is called at the connection's end.

        Without *readers* the event loop reads the socket.
        """
        self._context = context
        self._figures = context.figures
        self._peer_of = peer_of
        self._entered = entered
        self._left = left
        self._readers = readers or BY_LOOP
        self._fd = NO_FILE
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(context.settings.frame_bytes_max)
        self._frame_bytes_max = context.settings.frame_bytes_max
        self._whole_bytes_max = HEAD_BYTES + context.settings.frame_bytes_max
        self._session = ClientSession(context)
        self._waits = WaitingRequests(context.settings, context.figures, self._answer_waiting)
        self._transport: Any = None
        self._line: deque[bytes | tuple[int, ResumedRead]] = deque()
        """Requests in line: frames as they came, and reads that have waited."""
        self._is_turn_due = False
        self._later: list[bytes] = []
        """Answers of requests that waited, to be written together."""
        self._held_bytes = 0
        self._closing = False
        self._is_last = False
        self.heard_s = self._loop.time()
        self.blocked_s: float | None = None
        self.closing_s: float | None = None

    # --------------------------------------------------------------------- from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        settings = self._context.settings
        transport.set_write_buffer_limits(high=settings.write_buffer_bytes_max)
        if not self._entered(self):
            self._figures.refused += 1
            self.give_up(TooBusy("as many connections as may be are open: try again later"))
            return
        self._figures.accepted += 1
        self._fd = self._readers.begin(self._take, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the one buffer of all connections: its bytes are taken at once."""
        return self._context.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(bytes(self._context.buffer[:nbytes]))

    def _take(self, data: bytes) -> None:
        if self._closing:
            return
        figures = self._figures
        size = len(data)
        figures.bytes_in += size
        line = self._line
        if (
            not line
            and not self._held_bytes
            and self.blocked_s is None
            and HEAD_BYTES < size <= self._whole_bytes_max
            and length_at(data)[0] == size - HEAD_BYTES
        ):
            # One whole frame: the most common case by far, and nothing of a turn is needed for it.
            self.heard_s = self._loop.time()
            answer = self._answered(data[HEAD_BYTES:])
            if answer is not None:
                figures.bytes_out += len(answer)
                self._readers.send(self._fd, answer, self._transport)
            if self._closing:
                self.close()
            return
        try:
            payloads = self._frames.feed(data)
        except ProtocolError as error:
            self.give_up(error, "protocol")
            return
        held_bytes = self._frames.held_bytes
        if held_bytes != self._held_bytes:
            self._hold(held_bytes)
            if self._closing:
                return
        if payloads:
            self.heard_s = self._loop.time()
            line.extend(payloads)
            if not self._is_turn_due and self.blocked_s is None:
                self._take_turn()

    def pause_writing(self) -> None:
        if self.blocked_s is None:
            self.blocked_s = self._loop.time()
            self._figures.slow_clients += 1
            self._pause_reading()

    def resume_writing(self) -> None:
        self.blocked_s = None
        if self._closing:
            return
        if self._line:
            self._wait_for_turn()
        elif not self._is_last:
            self._resume_reading()

    def eof_received(self) -> None:
        """Return nothing, so that the transport closes at once."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._readers.leave(self._fd)
        self._fd = NO_FILE
        self._line.clear()
        self._later.clear()
        self._hold(0)
        self._waits.drop()
        self._session.leave()
        self._left(self)

    # ------------------------------------------------------------------------------- its turn

    def _take_turn(self) -> None:
        self._is_turn_due = False
        if self._closing or self.blocked_s is not None:
            return
        line, answers = self._line, []
        settings = self._context.settings
        count, size, end_s = settings.pipeline_max, settings.write_buffer_bytes_max, 0.0
        while line:
            answer = self._answered(line.popleft())
            if answer is not None:
                answers.append(answer)
            if not line or self._closing:
                break
            count -= 1
            size -= 0 if answer is None else len(answer)
            now_s = self._loop.time()
            end_s = end_s or now_s + TURN_S
            if count <= 0 or size <= 0 or now_s >= end_s:
                self._wait_for_turn()
                break
        if answers:
            self._write(answers)
        if self._closing:
            self.close()
        elif not line and self._frames.is_broken:
            self._refuse_broken()

    def _wait_for_turn(self) -> None:
        self._pause_reading()
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._take_turn()
        if not self._line and self.blocked_s is None and not (self._closing or self._is_last):
            self._resume_reading()

    def _pause_reading(self) -> None:
        self._readers.pause(self._fd, self._transport)

    def _resume_reading(self) -> None:
        self._readers.resume(self._fd, self._take, self._transport)

    def _answered(self, request: bytes | tuple[int, ResumedRead]) -> bytes | None:
        """Return the frame that answers or refuses a request; `None`: it comes later."""
        request_id, method = None, None
        session = self._session
        try:
            if isinstance(request, bytes):
                request_id, method, args = read_request(request)
                if session.hello is None:
                    return self._greeted(request_id, method, args)
                if session.meter is not None:
                    session.meter()
            else:
                request_id, (method, args) = request
                self._waits.release(request_id)
            value = session.answer(method, args)
            if type(value) is CoroutineType:
                self._waits.begin(request_id, method, value, len(request))
                return None
            frame = answer_frame(request_id, value, self._frame_bytes_max)
        except RlmmError as error:
            if isinstance(error, ProtocolError):
                self._closing = True
                self._figures.cut_off["protocol"] += 1
                if request_id is None and isinstance(request, bytes):
                    request_id = id_of(request)
            self._figures.refuse(method, error)
            return refusal_frame(request_id, error)
        except Exception as error:  # noqa: BLE001 - one request of one client must not end all
            return self._failed(request_id, method, error)
        self._figures.answered[method] += 1
        return frame

    def _greeted(self, request_id: int, method: str, args: list[Any]) -> bytes:
        """Answer hello; a client that is refused has to connect anew."""
        try:
            value = self._session.greet(method, args, self._peer_of(self._transport))
        except RlmmError:
            self._closing = True
            self._figures.cut_off["hello"] += 1
            raise
        self._figures.greeting_bytes -= self._held_bytes  # it is no stranger's any more
        self._figures.answered["hello"] += 1
        return answer_frame(request_id, value)

    def _answer_waiting(self, request_id: int, method: str, task: asyncio.Task[object]) -> None:
        self.heard_s = self._loop.time()
        try:
            value = result_of(task)
            if type(value) is ResumedRead:
                self._line.append((request_id, value))
                if self.blocked_s is None:
                    self._wait_for_turn()
                return
            frame = answer_frame(request_id, value)
            self._figures.answered[method] += 1
        except RlmmError as error:
            self._figures.refuse(method, error)
            frame = refusal_frame(request_id, error)
        except Exception as error:  # noqa: BLE001 - as above
            frame = self._failed(request_id, method, error)
        if not self._later:
            self._loop.call_soon(self._write_later)
        self._later.append(frame)

    def _failed(self, request_id: int | None, method: str | None, error: Exception) -> bytes:
        _log.error("a request failed: %s", method, exc_info=error)
        refusal = PartFailed(f"{method} failed of a fault of the service: {type(error).__name__}")
        self._figures.refuse(method, refusal)
        return refusal_frame(request_id, refusal)

    def _write_later(self) -> None:
        if self._later and not self._transport.is_closing():
            frames, self._later = self._later, []
            self._write(frames)

    def _write(self, frames: list[bytes]) -> None:
        joined = frames[0] if len(frames) == 1 else b"".join(frames)
        self._figures.bytes_out += len(joined)
        self._transport.write(joined)

    # --------------------------------------------------------------------------- how it ends

    def give_up(self, error: RlmmError, reason: str | None = None) -> None:
        """Refuse everything by one frame that belongs to no request, and close."""
        if reason is not None:
            self._figures.cut_off[reason] += 1
            self._figures.refuse(None, error)
        self._write([refusal_frame(None, error)])
        self.close()

    def close(self) -> None:
        """Close when the answers that were made are taken; nothing is read any more."""
        self._closing = True
        if self.closing_s is None:
            self.closing_s = self._loop.time()
        self._write_later()
        self._readers.leave(self._fd)
        self._transport.close()

    def abort(self, reason: str | None = None) -> None:
        if reason is not None:
            self._figures.cut_off[reason] += 1
        self._closing = True
        self._readers.leave(self._fd)
        self._transport.abort()

    def stop_reading(self) -> None:
        self._is_last = True
        self._pause_reading()

    @property
    def has_line(self) -> bool:
        return bool(self._line) and self.blocked_s is None

    @property
    def waits(self) -> WaitingRequests:
        return self._waits

    @property
    def is_welcome(self) -> bool:
        return self._session.is_welcome

    @property
    def state(self) -> str:
        if self._closing:
            return "closing"
        if self.blocked_s is not None:
            return "slow"
        if not self._session.is_known:
            return "greeting"
        return "waiting" if self._waits else "idle"

    def _refuse_broken(self) -> None:
        try:
            self._frames.feed(b"")
        except ProtocolError as error:
            self.give_up(error, "protocol")

    def _hold(self, held_bytes: int) -> None:
        """Count the bytes of an unfinished frame; the room for all of them is limited."""
        is_known = self._session.is_known
        self._figures.hold(held_bytes - self._held_bytes, is_known=is_known)
        self._held_bytes = held_bytes
        if self._closing or not held_bytes:
            return
        if held_bytes > HELLO_BYTES_MAX and not is_known:
            self.give_up(ProtocolError(f"no hello is larger than {HELLO_BYTES_MAX} bytes"), "hello")
        elif not self._figures.has_room(self._context.settings, is_known=is_known):
            self.abort("memory" if is_known else "greeting")
