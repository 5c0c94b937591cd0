"""
One connection: receives requests, answers them in turns, and writes the answers together.

A turn ends after a number of requests, bytes of answers or milliseconds; until the rest is answered
nothing more is read, nor while the client does not take its answers. A large request, each of a
connection that has lately sent a costly one, and what is read late wait for turns, by client.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from rlmm.access.peer_credentials import address_of
from rlmm.errors import PartFailed, ProtocolError, RlmmError, TooBusy
from rlmm.metadata.core_panic import CorePanic
from rlmm.sidecar.answer_writes import AnswerWrites
from rlmm.sidecar.frame_answers import FrameAnswers
from rlmm.sidecar.held_bytes import ReceivedBytes
from rlmm.sidecar.session import ClientSession
from rlmm.sidecar.socket_reads import BY_LOOP, NO_FILE
from rlmm.sidecar.waiting_requests import WaitingRequests, after_step, result_of
from rlmm.wire.framing import HEAD_BYTES, FrameReader, length_at
from rlmm.wire.messages import (
    HELLO_BYTES_MAX,
    answer_frame,
    id_of,
    read_first_request,
    read_request,
    refusal_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.access.roles import Peer
    from rlmm.sidecar.session import SessionContext
    from rlmm.sidecar.socket_reads import SocketReaders

    Request = bytes | tuple[int, str, object]
    """A frame; or id and method of a read that has waited, or begun, and the rest of its steps."""

_log = logging.getLogger(__name__)

TURN_S: Final = 0.002
"""How long the requests of one connection may take before others have their turn."""
SMALL_BYTES: Final = 64 * 1024
"""Frames above wait for their turn: reading one may take milliseconds."""
COSTLY_TURNS: Final = 8
"""Turns for which a connection waits after one that took longer than `TURN_S`."""


class ClientConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_answers", "_at_once_bytes_max", "_closing", "_context", "_costly_turns", "_entered",
        "_fd", "_figures", "_flat", "_frame_bytes_max", "_frames", "_is_last", "_is_turn_due",
        "_left", "_line", "_line_bytes", "_loop", "_peer_of", "_readers", "_received",
        "_said_hello", "_session", "_transport", "_waits", "_whole_bytes_max", "address",
        "closing_s", "heard_s",
    )  # fmt: skip

    def __init__(
        self,
        context: SessionContext,
        peer_of: Callable[[asyncio.Transport], Peer],
        entered: Callable[[ClientConnection], bool],
        left: Callable[[ClientConnection], None],
        greeted: Callable[[ClientConnection], None],
        readers: SocketReaders | None = None,
    ) -> None:
        """
        *entered* returns whether there is room; *left* is called at the connection's end, *greeted*
        when its hello was answered. Without *readers* the event loop reads the socket.
        """
        self._context, self._figures = context, context.figures
        self._peer_of, self._entered, self._left = peer_of, entered, left
        self._said_hello, self._readers = greeted, readers or BY_LOOP
        self._fd, self._costly_turns, self._loop = NO_FILE, 0, asyncio.get_running_loop()
        self._frame_bytes_max = context.settings.frame_bytes_max
        self._frames = FrameReader(self._frame_bytes_max)
        whole = HEAD_BYTES + min(SMALL_BYTES, self._frame_bytes_max)
        self._at_once_bytes_max = self._whole_bytes_max = 0 if self._readers is BY_LOOP else whole
        """Largest frame that is answered where it is read, if nothing is in line; often 0."""
        self._session = ClientSession(context)
        self._flat = FrameAnswers(self._session, context.settings, context.figures)
        self._waits = WaitingRequests(context.settings, context.figures, self._answer_waiting)
        self._answers = AnswerWrites(self, context.settings, self._figures, self._pause_reading)
        self._transport: Any = None
        self._line: deque[Request] = deque()
        self._received = ReceivedBytes(self, context.settings, context.figures)
        self._is_turn_due, self._line_bytes, self.address = False, 0, ""
        self._closing = self._is_last = False
        self.heard_s = self._loop.time()
        self.closing_s: float | None = None

    # --------------------------------------------------------------------- from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._answers.begin(transport)
        self.address = address_of(transport)
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
        figures, size, line = self._figures, len(data), self._line
        figures.bytes_in += size
        if (
            not line
            and not self._received.size
            and HEAD_BYTES < size <= self._at_once_bytes_max
            and not self._readers.is_late
            and length_at(data)[0] == size - HEAD_BYTES
        ):
            # One whole frame: the most common case by far, and nothing of a turn is needed for it.
            now_s = self.heard_s = self._loop.time()
            answer = self._flat.answer(data, now_s)
            if answer is None:
                answer = self._answered(data[HEAD_BYTES:])
                self._flat.look()
            if answer is not None:
                figures.bytes_out += len(answer)
                self._readers.send(self._fd, answer, self._transport)
            elif line:
                self._wait_for_turn()
            if self._closing:
                self.close()
            return
        try:
            payloads = self._frames.feed(data)
        except ProtocolError as error:
            self.give_up(error, "protocol")
            return
        if payloads:
            self.heard_s = self._loop.time()
            line.extend(payloads)
            self._line_bytes += sum(map(len, payloads))
            if not self._is_turn_due and self.blocked_s is None:
                self._begin_turn(payloads[0])
        elif size == len(self._context.buffer) and self._readers is BY_LOOP:
            # A piece of a large frame: the event loop would read one of each socket in a turn.
            self._wait_for_turn()
        self._count_held()

    def _begin_turn(self, first: bytes) -> None:
        by_loop, turns = self._readers is BY_LOOP, self._context.turns
        may = turns.may_begin() if by_loop else not self._readers.is_late
        if self._costly_turns or len(first) > SMALL_BYTES or not may:
            self._wait_for_turn()
        else:
            self._take_turn()

    def note_cost(self, elapsed_s: float) -> None:
        """A request took *elapsed_s*: let those of a costly connection wait for their turns."""
        if elapsed_s > TURN_S:
            self._costly_turns = COSTLY_TURNS
            self._at_once_bytes_max = 0
        elif self._costly_turns:
            self._costly_turns -= 1
            if not self._costly_turns:
                self._at_once_bytes_max = self._whole_bytes_max

    def pause_writing(self) -> None:
        self._answers.note_unsent()

    def resume_writing(self) -> None:
        if not self._answers.note_all_sent() or self._closing:
            return
        if self._line:
            self._wait_for_turn()
        elif not self._is_last:
            self._resume_reading()

    def eof_received(self) -> None:
        """Let the transport close at once."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._readers.leave(self._fd)
        self._fd = NO_FILE
        self._frames.drop()
        self._line.clear()
        self._line_bytes = 0
        self._received.drop()
        self._answers.drop()
        self._waits.drop()
        self._session.leave()
        self._left(self)
        self._transport = None  # asyncio's TLS keeps methods of this: a cycle would keep it all

    # ------------------------------------------------------------------------------- its turn

    def _take_turn(self) -> None:
        self._is_turn_due = False
        if self._closing or self.blocked_s is not None:
            return
        line, answers, begun_s = self._line, [], perf_counter()
        settings, end_s = self._context.settings, begun_s + TURN_S
        count, size = settings.pipeline_max, settings.write_buffer_bytes_max
        while line:
            request = line.popleft()
            if isinstance(request, bytes):
                self._line_bytes -= len(request)
            answer = self._answered(request)
            if answer is not None:
                answers.append(answer)
            if not line or self._closing:
                break
            count -= 1
            size -= 0 if answer is None else len(answer)
            if count <= 0 or size <= 0 or perf_counter() >= end_s:
                self._wait_for_turn()
                break
        self.note_cost(perf_counter() - begun_s)
        if answers:
            self._answers.write(answers)
        if self._closing:
            self.close()
        elif not line and self._frames.refused is not None:
            self.give_up(self._frames.refused, "protocol")

    def _wait_for_turn(self) -> None:
        self._pause_reading()
        if not self._is_turn_due:
            self._is_turn_due = True
            begun = bool(self._line) and type(self._line[0]) is tuple
            self._context.turns.wait(self, has_begun=begun)

    def go_on(self) -> None:
        self._take_turn()
        self._count_held()
        if not self._line and self.blocked_s is None and not (self._closing or self._is_last):
            self._resume_reading()

    def _pause_reading(self) -> None:
        self._readers.pause(self._fd, self._transport)

    def _resume_reading(self) -> None:
        self._readers.resume(self._fd, self._take, self._transport)

    def _answered(self, request: Request) -> bytes | None:
        """Return the frame that answers or refuses a request; `None`: it comes later."""
        request_id, method = None, None
        session = self._session
        try:
            if isinstance(request, bytes):
                if session.hello is None:
                    request_id, method, args = read_first_request(request)
                    return self._greeted(request_id, method, args)
                if session.meter is not None:
                    request_id = id_of(request)
                    session.meter(len(request))
                request_id, method, args = read_request(request)
                value = session.answer(method, args)
            else:
                request_id, method, value = request
            if type(value) is CoroutineType:
                self._waits.begin(request_id, method, value, len(request))
                return None
            if type(value) is GeneratorType:
                value = after_step(value)
                if type(value) is GeneratorType:
                    self._line.appendleft((request_id, method, value))
                    return None
            frame = answer_frame(request_id, value, self._frame_bytes_max)
        except RlmmError as error:
            if request_id is None and isinstance(request, bytes):
                request_id = id_of(request)
            return self._refused(request_id, method, error)
        except (Exception, CorePanic) as error:  # noqa: BLE001 - one request must not end all
            return self._failed(request_id, method, error)
        self._figures.answered[method] += 1
        return frame

    def _refused(self, request_id: int | None, method: str | None, error: RlmmError) -> bytes:
        session = self._session
        if isinstance(error, ProtocolError) or session.hello is None:
            if not self._closing:
                self._figures.cut_off["protocol" if session.is_known else "hello"] += 1
            self._closing = True
        self._figures.refuse(method, error)
        return refusal_frame(request_id, error)

    def _greeted(self, request_id: int, method: str, args: list[Any]) -> bytes:
        """Answer hello; a client that is refused has to connect anew."""
        value = self._session.greet(method, args, self._peer_of(self._transport))
        self._said_hello(self)
        self._waits.client_name = self._session.limited_name
        self._received.note_hello()
        self._figures.answered["hello"] += 1
        return answer_frame(request_id, value)

    def _answer_waiting(self, request_id: int, method: str, task: asyncio.Task[object]) -> None:
        self.heard_s = self._loop.time()
        try:
            value = result_of(task)
            if type(value) is GeneratorType:
                self._line.append((request_id, method, self._waits.released(request_id, value)))
                if self.blocked_s is None:
                    self._wait_for_turn()
                return
            frame = answer_frame(request_id, value)
            self._figures.answered[method] += 1
        except RlmmError as error:
            self._figures.refuse(method, error)
            frame = refusal_frame(request_id, error)
        except (Exception, CorePanic) as error:  # noqa: BLE001 - as above
            frame = self._failed(request_id, method, error)
        self._answers.write_later(frame)

    def _failed(self, request_id: int | None, method: str | None, error: BaseException) -> bytes:
        _log.error("a request failed: %s", method, exc_info=error)
        refusal = PartFailed(f"{method} failed of a fault of the service: {type(error).__name__}")
        self._figures.refuse(method, refusal)
        return refusal_frame(request_id, refusal)

    # --------------------------------------------------------------------------- how it ends

    def give_up(self, error: RlmmError, reason: str | None = None) -> None:
        """Refuse everything by one frame that belongs to no request, and close."""
        if reason is not None:
            self._figures.cut_off[reason] += 1
            self._figures.refuse(None, error)
        self._answers.write([refusal_frame(None, error)])
        self.close()

    def close(self) -> None:
        """Close when the answers that were made are taken; nothing is read any more."""
        self._closing = True
        if self.closing_s is None:
            self.closing_s = self._loop.time()
        if self._transport is not None:
            self._answers.flush()
            self._readers.leave(self._fd)
            self._transport.close()

    def abort(self, reason: str | None = None) -> None:
        if reason is not None:
            self._figures.cut_off[reason] += 1
        self._closing = True
        self._readers.leave(self._fd)
        if self._transport is not None:
            self._transport.abort()

    def stop_reading(self) -> None:
        self._is_last = True
        self._pause_reading()

    @property
    def client_name(self) -> str:
        return self._session.client.name if self._session.is_known else ""

    @property
    def has_line(self) -> bool:
        return bool(self._line) and self.blocked_s is None

    @property
    def blocked_s(self) -> float | None:
        return self._answers.blocked_s

    @property
    def waits(self) -> WaitingRequests:
        return self._waits

    @property
    def is_welcome(self) -> bool:
        return self._session.is_welcome

    @property
    def state(self) -> str:
        if self._closing or self.blocked_s is not None:
            return "closing" if self._closing else "slow"
        if not self._session.is_known:
            return "greeting"
        return "waiting" if self._waits else "idle"

    def _count_held(self) -> None:
        """Count the bytes of unanswered frames; the room for all of them is limited."""
        size, is_known = self._frames.held_bytes + self._line_bytes, self._session.is_known
        self._received.note(size, is_known=is_known, is_closing=self._closing)
        if size > HEAD_BYTES + HELLO_BYTES_MAX and not (is_known or self._closing or self._line):
            self.give_up(ProtocolError(f"no hello is larger than {HELLO_BYTES_MAX} bytes"), "hello")
