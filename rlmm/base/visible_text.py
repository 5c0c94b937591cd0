"""
Visible text: the words of others, such as names and messages of a service, fit for a terminal.

Invariant: what comes out moves no cursor, changes no direction, and begins no line of its own.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
"""Control characters, marks of direction and of no width, separators, and halves of characters."""


def visible(text: str) -> str:
    """Escape invisible characters, line breaks too: names may contain any."""
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def visible_line(text: str) -> str:
    """Return *text* on one line, with single spaces."""
    return visible(" ".join(text.split()))


def visible_block(text: str) -> str:
    """Escape all invisible characters but line feeds, in a text that has lines of ours."""
    return "\n".join(map(visible, text.split("\n")))
