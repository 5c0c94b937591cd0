"""Ids that a log of our own is born with, made the way Kafka makes its own."""

from __future__ import annotations

import uuid

from rlmm.metadata.ids import Uuid


def random_uuid() -> Uuid:
    """Return a random id, in no text form mistaken for an option: it never begins with a dash."""
    while True:
        found = Uuid(uuid.uuid4().bytes)
        if not str(found).startswith("-"):
            return found
