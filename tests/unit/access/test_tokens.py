"""Tokens: their form, and the rights on their file."""

from __future__ import annotations

import hashlib
import hmac
import stat
from typing import TYPE_CHECKING

import pytest

from rlmm.access.authentication import OWN_CLIENT, Authenticator
from rlmm.access.roles import Grant, Peer, Role
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.access.tokens import Tokens, digest_of, own_token, read_tokens, read_tokens_file
from rlmm.errors import ConfigError, NotPermitted

if TYPE_CHECKING:
    from pathlib import Path


ONE, TWO = "one-token-of-some-length", "two-token-of-some-length"
LINES = f"""
# who may what
broker-1 broker:1 {ONE}
ops\tadmin   sha256:{hashlib.sha256(TWO.encode()).hexdigest()}
"""


def test_read_tokens_then_finds_whose_a_token_is_by_its_digest_alone() -> None:
    """A token and its digest are written alike, and only digests are kept."""
    tokens = Tokens(read_tokens(LINES, "x"))
    assert tokens.find(ONE) == (digest_of(ONE), Grant("broker-1", Role.BROKER, 1))
    assert tokens.find(TWO) == (digest_of(TWO), Grant("ops", Role.ADMIN))
    assert tokens.names == {"broker-1", "ops"}
    assert [tokens.find(other) for other in ("", ONE[:-1], ONE + " ", "\udcff")] == [None] * 4
    digest = hashlib.sha256(TWO.encode()).hexdigest()
    assert tokens.find(f"sha256:{digest}") is None  # a stolen digest opens nothing
    assert ONE not in repr(tokens)
    assert repr(tokens) == "Tokens(2)"


def test_find_then_compares_with_every_digest_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison takes the same time for every token."""
    compared: list[bytes] = []
    compare = hmac.compare_digest

    def counted(known: bytes, shown: bytes) -> bool:
        compared.append(known)
        return compare(known, shown)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    tokens = Tokens(read_tokens(LINES, "x"))
    for shown in (ONE, TWO, "neither"):
        compared.clear()
        tokens.find(shown)
        assert compared == [digest_of(ONE), digest_of(TWO)]


def test_read_tokens_when_divided_by_semicolons_then_as_by_lines() -> None:
    """An environment variable is one line."""
    assert set(read_tokens(f"a reader {ONE}; b admin {TWO};", "x")) == {
        digest_of(ONE), digest_of(TWO),
    }  # fmt: skip


def test_read_tokens_when_a_name_has_two_then_both_are_taken() -> None:
    """A name may have two tokens, so that one can replace the other."""
    assert len(read_tokens(f"a reader {ONE}\na reader {TWO}", "x")) == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a {ONE}", 1),
        (f"\na reader {ONE} {TWO}", 2),
        (f"a root {ONE}", 1),
        (f"a {ONE} reader", 1),
        (f"{ONE} reader a", 1),
        ("a reader " + "x" * 16, 0),
        ("a reader " + "x" * 15, 1),
        ("a reader sha256:00", 1),
        ("a reader sha256:" + "g" * 64, 1),
        ("a reader t\xf6ken-t\xf6ken-t\xf6ken-t\xf6ken", 1),
        ("a reader " + "x" * 4097, 1),
        (f"a reader {ONE}\na admin {TWO}", 2),
        (f"a reader {ONE}\nb reader {ONE}", 2),
        (f"a reader:1 {ONE}", 1),
    ],
)
def test_read_tokens_when_a_line_is_malformed_then_refused_by_number(text: str, line: int) -> None:
    """The error names the line number only, because any word of the line may be a token."""
    if not line:
        assert read_tokens(text, "x")
        return
    with pytest.raises(ConfigError) as caught:
        read_tokens(text, "the file")
    said = str(caught.value)
    assert said.startswith(f"the file, line {line} must")
    assert not [word for word in text.split() if len(word) > 8 and word in said]


def test_read_tokens_when_there_are_too_many_then_refused() -> None:
    """A tokens file above the maximum is refused, because each shown token is compared with all."""
    many = "\n".join(f"c{number} reader {number:032d}" for number in range(1_001))
    with pytest.raises(ConfigError, match="more than 1000 tokens, got 1001"):
        read_tokens(many, "x")


@pytest.mark.parametrize(
    ("mode", "is_taken"),
    [(0o600, True), (0o640, True), (0o400, True), (0o644, False), (0o604, False), (0o602, False)],
    ids=oct,
)
def test_read_tokens_file_when_everybody_may_read_it_then_refused(
    tmp_path: Path, mode: int, is_taken: bool
) -> None:
    """A tokens file readable by all users is refused, and one readable by a group taken."""
    path = tmp_path / "tokens"
    path.write_text(LINES)
    path.chmod(mode)
    if is_taken:
        assert len(read_tokens_file(path)) == 2
        return
    with pytest.raises(ConfigError, match=rf"its mode is {mode:04o}: chmod o= "):
        read_tokens_file(path)


@pytest.mark.parametrize("what", ["absent", "folder", "binary", "huge"])
def test_read_tokens_file_when_unreadable_then_refused_by_path(tmp_path: Path, what: str) -> None:
    """One line names key and path."""
    path = tmp_path / "tokens"
    if what == "folder":
        path.mkdir(mode=0o700)
    elif what != "absent":
        path.write_bytes(b"a reader \xff" if what == "binary" else b"#" * (1024 * 1024 + 1))
        path.chmod(0o600)
    with pytest.raises(ConfigError, match=rf"^access\.tokens_file {path} "):
        read_tokens_file(path)


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
