"""The events of a run: lines for people, a digest for comparing two runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Story:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()

    def tell(self, who: str, what: str) -> None:
        line = f"{self._now_s():9.3f} {who:<8} {what}"
        self.lines.append(line)
        self._digest.update(line.encode())

    def count(self, what: str) -> None:
        self.counts[what] += 1

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()
