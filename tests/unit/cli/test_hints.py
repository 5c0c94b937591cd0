"""Half a line behind an error: the way out."""

from __future__ import annotations

import pytest

from rlmm import errors
from rlmm.cli.common.query_command import hint_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.NotReady("behind", reason="replaying"), "--wait 30s"),
        (errors.NotReady("no folder", reason="absent"), "--log-dirs"),
        (errors.NotReady("not ours", reason="not-assigned"), "--bootstrap-server"),
        (errors.NotReady("poison", reason="not-understood"), "--verdict undecodable"),
        (errors.SidecarUnavailable("nobody"), "--sidecar"),
        (errors.NotPermitted("no"), "--token-file"),
        (errors.InvalidArgument("no"), ""),
    ],
)
def test_hint_names_what_helps_and_nothing_where_nothing_does(
    error: errors.RlmmError, said: str
) -> None:
    """The hint does not advise waiting where it does not help."""
    hint = hint_of(error)
    assert said in hint
    assert bool(hint) == bool(said)
    assert ("--wait" in hint) == (said == "--wait 30s")
