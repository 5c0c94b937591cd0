"""Flags that stand before the command, and which variables are those of commands."""

from __future__ import annotations

import pytest

from rlmm.cli.common.shared_flags import flags_behind, is_of_commands

COMMANDS = ("status", "segments", "support-bundle")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("status", "status"),
        ("--sidecar x status", "status --sidecar x"),
        ("--sidecar=x --wide status --at 5", "status --at 5 --sidecar=x --wide"),
        ("--debug --quiet status", "--debug status --quiet"),
        ("--log-dirs a --log-dirs b segments list", "segments list --log-dirs a --log-dirs b"),
        ("--output json segments describe -- -abc", "segments describe --output json -- -abc"),
        ("--sidecar status segments list", "segments list --sidecar status"),
        ("--help", "--help"),
        ("--version status", "--version status"),
        ("--sidecar x", "--sidecar x"),
        ("--sidecar", "--sidecar"),
        ("--unknown status", "--unknown status"),
        ("", ""),
    ],
)
def test_shared_flags_before_a_command_stand_behind_it(words: str, expected: str) -> None:
    """Shared flags move with their values behind the command, and a double dash ends them."""
    assert " ".join(flags_behind(words.split(), COMMANDS)) == expected


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("RLMM_SIDECAR", True),
        ("RLMM_BOOTSTRAP_SERVER", True),
        ("RLMM_DEBUG", True),
        ("RLMM_STATUS_WATCH", True),
        ("RLMM_SUPPORT_BUNDLE_OUTPUT", True),
        ("RLMM_STATUSES", False),
        ("RLMM_SIDECAR_LISTEN", False),
        ("RLMM_MODE", False),
        ("SIDECAR", False),
    ],
)
def test_variable_of_a_flag_is_told_from_others(variable: str, expected: bool) -> None:
    """A shared flag has one variable for all commands, and an own flag has the command's prefix."""
    assert is_of_commands(variable, COMMANDS) is expected
