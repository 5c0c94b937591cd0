"""Reading of a transport that is paused from its first byte on, on every tested Python."""

from __future__ import annotations

import asyncio


def pause_from_start(transport: asyncio.Transport) -> None:
    """
    Pause reading; call it in `connection_made`, and resume no earlier than in the turn after next.

    Early releases of Python 3.11, such as 3.11.2 of Debian 12, register the socket right after
    `connection_made`, although it is paused there. The next turn takes that back before it reads.
    """
    transport.pause_reading()
    asyncio.get_running_loop().call_soon(_pause_again, transport)


def _pause_again(transport: asyncio.Transport) -> None:
    transport.resume_reading()
    transport.pause_reading()
