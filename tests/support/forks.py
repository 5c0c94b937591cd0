"""Forked children of a test."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEADLINE_S = 30.0


def in_a_child(work: Callable[[], str]) -> str:
    """Return what *work* returns in a forked child; an empty text where that does not end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        if select.select([reading], [], [], DEADLINE_S)[0]:
            return os.read(reading, 4_096).decode()
        os.kill(child, signal.SIGKILL)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    return ""
