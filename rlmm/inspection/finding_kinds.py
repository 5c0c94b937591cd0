"""Kinds of findings, by the command that looks for them; codes never change their meaning. Pure."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from rlmm.findings import tier_findings as tier_kinds
from rlmm.inspection import check_thresholds, late_finishes, preflight, stuck, verify
from rlmm.inspection import doctor_findings as doctor_kinds
from rlmm.inspection import explain_findings as explain_kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.findings.finding import FindingKind

BY_COMMAND: Final[Mapping[str, tuple[FindingKind, ...]]] = {
    "verify": (*verify.KINDS, *late_finishes.KINDS),
    "stuck": stuck.KINDS,
    "explain": explain_kinds.KINDS,
    "doctor": doctor_kinds.KINDS,
    "check": check_thresholds.KINDS,
    "preflight": preflight.KINDS,
    **tier_kinds.KINDS_BY_COMMAND,
}
KINDS: Final = tuple(chain.from_iterable(BY_COMMAND.values()))
