"""Objects that a `with` block closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class ClosedByWith(ABC):
    """Its `with` block calls `close`."""

    @abstractmethod
    def close(self) -> object: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
