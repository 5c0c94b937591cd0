"""Objects that a `with` block closes."""

from __future__ import annotations

from typing import Self


class ClosedByWith:
    """Its `with` block calls `close`."""

    def close(self) -> object:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
