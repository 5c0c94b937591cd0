"""Topic names, judged by the rule of Kafka's brokers. Pure."""

from __future__ import annotations

import re
from typing import Final

from rlmm.errors import InvalidArgument

TOPIC_NAME: Final = r"[A-Za-z0-9._-]{1,249}"
"""The characters of a name, as a pattern; of such names brokers refuse `.` and `..` alone."""
_WHOLE = re.compile(TOPIC_NAME)
_SHOWN_CHARS = 260


def is_topic_name(name: str) -> bool:
    """Return whether a broker can have a topic of this name."""
    return _WHOLE.fullmatch(name) is not None and name not in {".", ".."}


def require_topic_name(name: str) -> None:
    """Raise `InvalidArgument` for a name that no broker accepts."""
    if not is_topic_name(name):
        msg = f"a topic name is 1 to 249 of A-Z a-z 0-9 . _ -, got {name[:_SHOWN_CHARS]!r}"
        raise InvalidArgument(msg)
