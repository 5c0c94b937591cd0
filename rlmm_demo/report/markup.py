"""Markup: elements of the page, and the escaping of the texts in them. Pure."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

_COLOURED = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Characters that XML forbids or that change the direction of the text around them."""


class Markup(str):
    """A text that is escaped already."""

    __slots__ = ()


def plain(text: str) -> str:
    """Return *text* without terminal colours; invisible characters are written as escapes."""
    unix = _COLOURED.sub("", text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", unix)


def element(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """Return an element; `class_` names class, a child that is no `Markup` is escaped."""
    spelled = "".join(
        f" {key.rstrip('_').replace('_', '-')}={_attribute(value)}"
        for key, value in attributes.items()
        if value is not None
    )
    inside = join(*children)
    if not inside and name in _EMPTY:
        return Markup(f"<{name}{spelled}/>")
    return Markup(f"<{name}{spelled}>{inside}</{name}>")


_EMPTY = frozenset({"meta"})


def join(*parts: str | None) -> Markup:
    return Markup(
        "".join(
            part if isinstance(part, Markup) else escape(plain(part))
            for part in parts
            if part is not None
        )
    )


def _attribute(value: object) -> str:
    return quoteattr(re.sub(r"[\n\t]", " ", plain(str(value))))
