"""Visible text: names may contain any character, and terminals obey some. Pure."""

from __future__ import annotations

import re

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Escape invisible characters: those that control a terminal, or change its direction."""
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
