"""No call of ours may block the event loop in these tests."""

from tests.support.blocking import nothing_blocks

__all__ = ["nothing_blocks"]
