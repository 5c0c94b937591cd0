"""
Elements of pages and pictures, and the escaping of what stands in them. Pure.

A text is escaped where it becomes a part of an element; what is `Markup` has been.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

_COLOURED = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
"""What turns colours of a terminal on and off."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""What XML does not allow, and what changes the direction of the text around it."""


class Markup(str):
    """A text that is markup already."""

    __slots__ = ()


def plain(text: str) -> str:
    """*text* without colours, with what cannot be seen, or may not stand in XML, written out."""
    unix = _COLOURED.sub("", text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", unix)


def element(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """
    An element; an attribute is said with underscores for dashes, `class_` for class.

    Children that are no `Markup` are text; `None`, as a child or an attribute, is left out.
    """
    spelled = "".join(
        f" {key.rstrip('_').replace('_', '-')}={_attribute(value)}"
        for key, value in attributes.items()
        if value is not None
    )
    inside = join(*children)
    if not inside and name in _EMPTY:
        return Markup(f"<{name}{spelled}/>")
    return Markup(f"<{name}{spelled}>{inside}</{name}>")


_EMPTY = frozenset({"circle", "line", "link", "meta", "path", "rect"})
"""Elements that hold nothing; of the others, a browser waits for the end."""


def join(*parts: str | None) -> Markup:
    """Elements and texts one after the other."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else escape(plain(part))
            for part in parts
            if part is not None
        )
    )


def coordinate(value: float) -> str:
    """A number of a picture: a tenth of a pixel is seen by nobody."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return quoteattr(coordinate(value))
    return quoteattr(re.sub(r"[\n\t]", " ", plain(str(value))))
