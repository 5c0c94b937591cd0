"""Records of the tier that somebody asked for and cannot have."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class DataLost(RlmmError):
    """Offsets that were asked for are not there; the message names them, and why."""

    code = "data-lost"
    exit_code = 1


class TierUnreadable(RlmmError):
    """A segment is there, and cannot be read as it is; the message has the code of the finding."""

    code = "tier-unreadable"
    exit_code = 1
