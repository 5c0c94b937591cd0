"""The token that the service makes for its own user."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from rlmm.access.authentication import OWN_CLIENT, Authenticator
from rlmm.access.local_token import own_token
from rlmm.access.roles import Peer, Role
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.errors import ConfigError, NotPermitted

if TYPE_CHECKING:
    from pathlib import Path

KEY = "http.token_file"


def test_own_token_when_there_is_none_then_is_made_for_its_user_alone(tmp_path: Path) -> None:
    """The token is random, its file is readable by its owner only, and no other file is left."""
    file = tmp_path / "http.token"
    token = own_token(file, KEY)
    assert own_token(tmp_path / "other", KEY) != token
    assert len(token) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"http.token", "other"}


def test_own_token_when_there_is_one_then_stays_until_it_is_removed(tmp_path: Path) -> None:
    """The token stays until the operator removes its file."""
    file = tmp_path / "http.token"
    token = own_token(file, KEY)
    assert own_token(file, KEY) == token
    file.unlink()
    assert own_token(file, KEY) != token


def test_own_token_when_others_may_read_it_then_is_refused(tmp_path: Path) -> None:
    """The service refuses a token file that other users may read."""
    file = tmp_path / "http.token"
    own_token(file, KEY)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match=r"http\.token_file .*chmod o="):
        own_token(file, KEY)


@pytest.mark.parametrize("text", ["", "short", "two tokens-0123456789"])
def test_own_token_when_the_file_has_other_contents_then_refused(tmp_path: Path, text: str) -> None:
    """A file with other contents is refused, not overwritten, and not shown."""
    file = tmp_path / "http.token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="must hold one token") as caught:
        own_token(file, KEY)
    assert not text or text not in str(caught.value)
    assert file.read_text() == text


def test_own_token_when_it_cannot_be_written_then_that_is_a_named_refusal(tmp_path: Path) -> None:
    """The error names the key and the file."""
    with pytest.raises(ConfigError, match=r"http\.token_file .*cannot be written"):
        own_token(tmp_path / "missing/http.token", KEY)


def test_own_token_when_taken_later_then_is_one_from_then_on() -> None:
    """A token that is read later than the start is valid from then on."""
    token = "0123456789abcdef"
    door = Authenticator(AccessSettings(), TlsSettings())
    with pytest.raises(NotPermitted):
        door.identify(Peer("tcp"), token)
    door.take_own(token)
    assert door.is_valid(door.identify(Peer("tcp"), token))
    assert (door.knows_somebody, door.statistics().tokens) == (True, 1)
    door.look()
    assert door.identify(Peer("tcp"), token).name == OWN_CLIENT


def test_own_token_when_shown_then_gives_the_role_of_a_reader() -> None:
    """The own token gives the role reader, over a network only with encryption."""
    token = "0123456789abcdef"
    door = Authenticator(AccessSettings(), TlsSettings(), own_token=token)
    client = door.identify(Peer("tcp"), token)
    assert (client.name, client.role) == (OWN_CLIENT, Role.READER)
    assert door.is_valid(client)
    assert door.knows_somebody
    with pytest.raises(NotPermitted):
        door.identify(Peer("tcp", is_private=False), token)
