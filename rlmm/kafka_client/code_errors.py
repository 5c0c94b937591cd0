"""Errors of ours for Kafka's error codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.kafka_messages.error_codes import DENIED, name_of

if TYPE_CHECKING:
    from rlmm.errors import LogError


def error_for(where: str, code: int, right: str) -> LogError:
    """Return the error for *code* at *where*, in a request that needs the right *right*."""
    if code in DENIED:
        return LogNotPermitted(
            f"{where}: {name_of(code)}: this user lacks the right to {right}; grant it by an ACL"
        )
    return LogUnavailable(f"{where}: {name_of(code)}")
