"""
Redaction of support bundles: placeholders replace topics, hosts, paths and opaque bytes. Pure.

A name has the same placeholder everywhere in a bundle; the bundle's key keeps names from being
guessed. Ids that Kafka generated, offsets, sizes and times stay.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ADDRESS = re.compile(
    r"(?<![\w.-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*"
    r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?=:\d{2,5}(?![\w.]))"
)
"""A host name or an IPv4 address in front of a port."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d")
"""What stands before the minutes of a time, and looks like a host before its port."""
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_PATH = re.compile(r"(?<![\w/.])/(?:[^\s/:,;'\"]+/)*[^\s/:,;'\"]+")
_NAMES = {"topic"}
_OPAQUE = {"custom_metadata", "value", "value_hex", "key", "key_hex"}
_STANDIN = re.compile(r"(?:topic|host|path)-[0-9a-f]{8}")


class NameRedaction:
    def __init__(self, key: bytes, topics: Iterable[str], *, is_on: bool = True) -> None:
        """*topics* are names to replace anywhere in a text."""
        self._key = key
        self._is_on = is_on
        names = sorted({name for name in topics if not name.startswith("__")}, key=len)[::-1]
        words = "|".join(re.escape(name) for name in names)
        self._topics = re.compile(rf"(?<![\w.])(?:{words})(?!\w|\.\w)") if words else None
        self._known = set(names)

    def of(self, value: object) -> object:
        return self._of(value, None) if self._is_on else value

    def _of(self, value: object, key: str | None) -> object:
        if isinstance(value, dict):
            return {self._text(str(name)): self._of(one, str(name)) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._of(one, key) for one in value]
        if not isinstance(value, str):
            return value
        if key in _OPAQUE:
            return f"{len(value)} characters"
        if key in _NAMES and not value.startswith("__"):
            return self._standin("topic", value)
        return self._text(value)

    def _text(self, text: str) -> str:
        if self._topics is not None:
            text = self._topics.sub(lambda found: self._standin("topic", found[0]), text)
        text = _ADDRESS.sub(lambda found: self._host(found[0]), text)
        text = _IPV4.sub(lambda found: self._host(found[0]), text)
        return _PATH.sub(lambda found: self._standin("path", found[0]), text)

    def _host(self, name: str) -> str:
        if name in {"localhost", "127.0.0.1"} or name.isdigit():
            return name
        is_none = _STANDIN.fullmatch(name) or _TIME.fullmatch(name)
        return name if is_none else self._standin("host", name)

    def _standin(self, kind: str, name: str) -> str:
        digest = hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()
        return f"{kind}-{digest[:8]}"
