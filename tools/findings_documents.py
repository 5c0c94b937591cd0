"""The tables of `docs/findings.md`: each kind of finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection.finding_kinds import BY_COMMAND

if TYPE_CHECKING:
    from rlmm.findings.finding import FindingKind


def findings_reference() -> str:
    """One section for each command, and in it one for each code, by severity and code."""
    sections = []
    for command, kinds in BY_COMMAND.items():
        ordered = sorted(kinds, key=lambda one: (-one.severity, one.code))
        sections.append(f"## Found by `rlmm {command}`\n\n" + "\n".join(map(_section, ordered)))
    return "\n" + "\n".join(sections) + "\n"


def _section(kind: FindingKind) -> str:
    return (
        f"### {kind.code}\n\n{str(kind.severity).capitalize()}: {kind.title}.\n\n"
        f"- **Why it matters:** {kind.reason}.\n- **What to do:** {kind.fix}.\n"
    )
