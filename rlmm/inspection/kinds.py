"""
Every kind of finding there is, by the command that looks for it. Pure.

Codes are an interface: each stands for one meaning for ever, whoever finds it. `explain`, `check`
and `support-bundle` tell of others' kinds as well.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from rlmm.inspection import (
    doctor_kinds,
    explain_kinds,
    late_finishes,
    preflight,
    stuck,
    tier_kinds,
    verifying,
    watchdog,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.inspection.findings import Kind

BY_COMMAND: Final[Mapping[str, tuple[Kind, ...]]] = {
    "verify": (*verifying.KINDS, *late_finishes.KINDS),
    "stuck": stuck.KINDS,
    "explain": explain_kinds.KINDS,
    "doctor": doctor_kinds.KINDS,
    "check": watchdog.KINDS,
    "preflight": preflight.KINDS,
    **tier_kinds.KINDS_BY_COMMAND,
}
KINDS: Final = tuple(chain.from_iterable(BY_COMMAND.values()))
