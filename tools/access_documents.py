"""Writes the table of `docs/security.md`: which role may call which method."""

from __future__ import annotations

from rlmm.access.roles import Role
from rlmm.wire.methods import METHODS


def roles_reference() -> str:
    """One row for each method, one column for each role."""
    head = [
        f"| method | {' | '.join(Role)} | what it does |",
        f"| --- |{' --- |' * len(Role)} --- |",
    ]
    rows = [
        f"| `{method.name}` | "
        + " | ".join("yes" if role.may(method.role) else "" for role in Role)
        + f" | {method.meaning} |"
        for method in METHODS.values()
    ]
    return "\n" + "\n".join(head + rows) + "\n\n"
