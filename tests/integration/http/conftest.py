"""Every test of this folder fails when the service blocks the event loop."""

from tests.support.blocking import nothing_blocks

__all__ = ["nothing_blocks"]
