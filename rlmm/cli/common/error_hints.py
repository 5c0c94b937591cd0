"""Hints: what an operator can do about an error that ends a command."""

from __future__ import annotations

from rlmm import errors
from rlmm.inspection.source_status import NOT_ASSIGNED

_HINTS: dict[type[errors.RlmmError], str] = {
    errors.NotReady: "wait for it with --wait 30s",
    errors.SidecarUnavailable: "name a running service with --sidecar, or look without one: "
    "--bootstrap-server, --log-dirs",
    errors.LogUnavailable: "see that --bootstrap-server and --command-config are right",
    errors.LogNotPermitted: "the rights that are needed: READ and DESCRIBE on the metadata topic",
    errors.NotPermitted: "show a token that may do it with --token-file",
    errors.LogTruncated: "ask about a later moment: what the log no longer has cannot be read",
    errors.OverBudget: "ask again later",
    errors.TooBusy: "ask again later",
}

_NEVER_BY_ITSELF = {
    "absent": "look where it is held: in all its folders with --log-dirs, or in the topic itself "
    "with --bootstrap-server",
    NOT_ASSIGNED: "look in the topic itself with --bootstrap-server",
    "not-understood": "see them with `rlmm events --verdict undecodable`",
}
"""By the reason why something is not ready, where waiting brings nothing."""


def place_of(error: errors.RlmmError) -> str:
    """Return the progress of a metadata partition that is not ready, if the error has it."""
    if not isinstance(error, errors.NotReady) or error.records_left is None:
        return ""
    if str(error.target) in str(error):
        return ""
    return (
        f"metadata partition {error.metadata_partition} is at {error.position} of {error.target}, "
        f"{error.records_left} records are left"
    )


def hint_of(error: errors.RlmmError) -> str:
    """Return the way out that errors of this class have in common, if there is one."""
    if isinstance(error, errors.NotReady) and error.reason in _NEVER_BY_ITSELF:
        return _NEVER_BY_ITSELF[error.reason]
    for kind in type(error).__mro__:
        if kind in _HINTS:
            return _HINTS[kind]
    return ""
