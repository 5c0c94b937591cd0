"""The cost of an outage for the broker, and its limits. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rlmm.metadata.ids import Uuid
    from tests.support.plugin.outage_plans import Step
    from tests.support.plugin.segment_copies import Copies

ERRORS_A_SECOND_MAX = 10
"""Of tiering, with two consumers, each answered three times a second; without pace a thousand."""
ERRORS_MAX = 10
"""Beside that: what was under way when it began."""
OTHER_ERRORS_MAX = 3
"""Of anything else, for each outage: Kafka's own, of a broker that starts or a slow machine."""
WARNINGS_MAX = 10
"""For each outage; what our plugins say of one is two to four lines."""
OUR_WARNINGS_MAX = 4

COMPLAINT = re.compile(r" (ERROR|WARN|FATAL) .*(\.log\.remote\.| io\.rlmm\.)")
"""Of tiering; a slow machine has the broker complain of itself."""


class Lived(NamedTuple):
    steps: list[Step]
    seconds: float
    errors: list[str]
    warnings: list[str]

    def too_much(self) -> list[str]:
        tiering = [line for line in self.errors if ".log.remote." in line or " io.rlmm." in line]
        ours = [line for line in self.warnings if " io.rlmm." in line]
        figures = (
            ("errors of tiering", len(tiering), ERRORS_MAX + ERRORS_A_SECOND_MAX * self.seconds),
            ("other errors", len(self.errors) - len(tiering), OTHER_ERRORS_MAX * len(self.steps)),
            ("warnings", len(self.warnings), WARNINGS_MAX * len(self.steps)),
            ("warnings of ours", len(ours), OUR_WARNINGS_MAX * len(self.steps)),
        )
        return [
            f"{what}: {count}, more than {most:.0f}, in {self.seconds:.1f} s of {self.steps}"
            for what, count, most in figures
            if count > most
        ]


@dataclass(slots=True)
class Account:
    lived: list[Lived] = field(default_factory=list)
    cut: set[Uuid] = field(default_factory=set)
    """Copies that were open when the broker itself was down."""
    starts: list[tuple[float, float]] = field(default_factory=list)
    """When a broker was on its way up, in milliseconds of its clock."""

    def while_starting(self, copies: Copies) -> set[Uuid]:
        """Return copies that a starting broker left: it leads twice, first by old metadata."""
        return {
            name
            for name in copies.open
            if any(down <= copies.begun[name].at_ms <= up for down, up in self.starts)
        }

    def too_much(self) -> list[str]:
        return [line for lived in self.lived for line in lived.too_much()]
