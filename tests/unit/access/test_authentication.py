"""The door: credentials, roles, and changes of files."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as form

from rlmm.access.authentication import UNIX_CLIENT, Authenticator
from rlmm.access.roles import Client, Peer, Role
from rlmm.access.settings import AccessSettings, TlsSettings, UnixRole
from rlmm.access.tokens import digest_of
from rlmm.base.secret import Secret
from rlmm.errors import ConfigError, NotPermitted
from tests.support.engines import until
from tests.support.server.access_files import (
    ADMIN,
    BOUND,
    BROKER,
    READER,
    TOKENS,
    Pki,
    write_tokens,
)

if TYPE_CHECKING:
    from pathlib import Path

UNIX = Peer("unix", uid=1_000)
TCP = Peer("tcp")
OPEN_TCP = Peer("tcp", is_private=False)
NEW = "another-token-0123456789"


def door(tokens: str | None = TOKENS, **access: Any) -> Authenticator:
    said = None if tokens is None else Secret(tokens)
    return Authenticator(AccessSettings(tokens=said, **access), TlsSettings())


def certified(*names: str) -> Peer:
    """Return a client with a certificate."""
    return Peer("tcp", client_names=names)


@pytest.mark.parametrize(
    ("token", "name", "role", "broker_id"),
    [
        (READER, "reader", Role.READER, None),
        (BROKER, "broker", Role.BROKER, None),
        (BOUND, "broker-7", Role.BROKER, 7),
        (ADMIN, "ops", Role.ADMIN, None),
    ],
    ids=["reader", "broker", "bound", "admin"],
)
def test_identify_when_a_token_is_known_then_is_who_it_says_wherever_it_is_shown(
    token: str, name: str, role: Role, broker_id: int | None
) -> None:
    """A known token gives its client over TCP, over a Unix socket, and beside a certificate."""
    keeper = door(client_names=("x=admin",))
    expected = Client(name, role, broker_id, token_digest=digest_of(token))
    for peer in (TCP, UNIX, certified("x")):
        assert keeper.identify(peer, token) == expected


@pytest.mark.parametrize("peer", [TCP, UNIX, certified("x")], ids=["tcp", "unix", "certificate"])
@pytest.mark.parametrize("token", ["", READER[:-1], READER + "0", "reader", TOKENS])
def test_identify_when_a_token_is_unknown_then_refused(peer: Peer, token: str) -> None:
    """A removed token is refused on the Unix socket, too."""
    keeper = door(client_names=("x=admin",))
    with pytest.raises(NotPermitted, match="this token is not known here"):
        keeper.identify(peer, token)
    assert keeper.statistics().refused["unknown-token"] == 1


@pytest.mark.parametrize(
    ("peer", "where"),
    [
        (Peer("tcp", address="192.0.2.7"), "192.0.2.7"),
        (Peer("unix", uid=1_000), "user 1000"),
        (Peer("unix"), "a process of this machine"),
    ],
    ids=["tcp", "unix", "nobody"],
)
def test_identify_when_refused_then_a_line_of_level_debug_says_where_that_came_from(
    peer: Peer, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A debug line names the client that still has the old token, and never a token."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(NotPermitted):
        door().identify(peer, NEW)
    assert caplog.messages == [f"not let in from {where}: unknown-token"]


def test_identify_when_nothing_is_shown_over_tcp_then_refused() -> None:
    """A TCP client without credentials is refused, whatever the configuration."""
    for keeper in (door(), door(None), door(unix_role=UnixRole.ADMIN)):
        with pytest.raises(NotPermitted, match="a token is needed over TCP"):
            keeper.identify(TCP, None)
        assert keeper.statistics().refused["no-credentials"] == 1


@pytest.mark.parametrize("kind", ["URI", "DNS", "CN"])
def test_identify_when_a_name_has_a_kind_then_no_other_kind_of_name_fits(kind: str) -> None:
    """A role for a URI is given to no DNS name and no common name of the same text."""
    keeper = door(client_names=(f"{kind}:ops=admin",))
    assert keeper.identify(certified(f"{kind}:ops"), None).role is Role.ADMIN
    others = [other for other in ("URI", "DNS", "CN") if other != kind]
    for name in [*(f"{other}:ops" for other in others), f"CN:{kind}:ops", f"URI:{kind}:ops"]:
        with pytest.raises(NotPermitted):
            keeper.identify(certified(name), None)


def test_door_when_a_name_has_no_kind_then_warns_and_every_kind_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A name without a kind goes on working for every kind of name, and is warned of."""
    keeper = door(client_names=("ops=admin", "CN:b=reader"))
    (line,) = caplog.messages
    assert line.endswith("write URI:, DNS:, CN: before each of ops")
    for kind in ("URI", "DNS", "CN"):
        assert keeper.identify(certified(f"{kind}:ops"), None).name == "ops"


@pytest.mark.parametrize("role", UnixRole)
def test_identify_when_nothing_is_shown_then_what_is_configured(role: UnixRole) -> None:
    """The administrator by default; none asks for a token there, too."""
    assert AccessSettings().unix_role is UnixRole.ADMIN
    keeper = door(unix_role=role)
    if role is UnixRole.NONE:
        with pytest.raises(NotPermitted, match="a token is needed through the Unix socket"):
            keeper.identify(UNIX, None)
        return
    found = keeper.identify(UNIX, None)
    assert found == Client(UNIX_CLIENT, Role(role), is_limited=False)


def test_identify_when_a_token_comes_unencrypted_over_a_network_then_refused() -> None:
    """An unencrypted token from a network is refused, unless the configuration allows it."""
    with pytest.raises(NotPermitted, match="must come by TLS"):
        door().identify(OPEN_TCP, READER)
    assert door(plaintext_tokens=True).identify(OPEN_TCP, READER).name == "reader"


def test_identify_when_a_certificate_is_shown_then_the_first_name_with_a_role_counts() -> None:
    """The first name of a certificate that has a role gives the role."""
    keeper = door(client_names=("spiffe://b/7=broker:7", "ops=admin"))
    assert keeper.identify(certified("other", "spiffe://b/7", "ops"), None) == Client(
        "spiffe://b/7", Role.BROKER, 7
    )
    assert keeper.identify(certified("ops", "spiffe://b/7"), None).role is Role.ADMIN
    with pytest.raises(NotPermitted, match=r"access\.client_names gives no name of it a role"):
        keeper.identify(certified("other", "OPS"), None)
    assert keeper.statistics().refused["unknown-certificate"] == 1


def test_tokens_when_the_file_is_replaced_then_old_ones_are_good_for_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new file replaces all of its tokens, and those of the environment stay."""
    caplog.set_level(logging.DEBUG)
    path = write_tokens(tmp_path / "tokens", f"a reader {READER}\nb broker {BROKER}\n")
    keeper = door(f"ops admin {ADMIN}", tokens_file=path)
    reader, broker, admin = (keeper.identify(TCP, one) for one in (READER, BROKER, ADMIN))
    keeper.look()
    assert (keeper.generation, keeper.statistics().tokens_reloads) == (0, 0)
    write_tokens(path, f"a reader {NEW}\nb admin {BROKER}\n")
    keeper.look()
    assert (keeper.generation, keeper.statistics().tokens_reloads) == (1, 1)
    assert keeper.identify(TCP, NEW).name == "a"
    with pytest.raises(NotPermitted, match="not known"):
        keeper.identify(TCP, READER)
    # Who was let in by what is gone, or gives something else now, is not welcome any more.
    assert [keeper.is_valid(one) for one in (reader, broker, admin)] == [False, False, True]
    assert keeper.is_valid(keeper.identify(UNIX, None))
    assert not [one for one in (READER, BROKER, ADMIN, NEW) if one in caplog.text]


@pytest.mark.parametrize("how", ["nonsense", "gone", "open", "twice"])
def test_tokens_when_the_new_file_is_broken_then_the_old_ones_stay_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """A broken file causes one log line without its text, and the next good file counts."""
    path = write_tokens(tmp_path / "tokens")
    keeper = door(f"other admin {NEW}", tokens_file=path)
    if how == "gone":
        path.unlink()
    elif how == "open":
        path.chmod(0o644)
    else:
        text = f"x reader {NEW}" if how == "twice" else "hunter2hunter2hunter2 reader"
        write_tokens(path, text)
    for _ in range(3):
        keeper.look()
    (line,) = caplog.records
    said = line.getMessage()
    assert said.startswith("the file of tokens changed and cannot be used; nothing changes: ")
    assert "hunter2" not in said
    assert NEW not in said
    assert keeper.identify(TCP, READER).name == "reader"
    assert (keeper.generation, keeper.statistics().tokens_failures) == (0, 1)
    assert keeper.statistics().files_unusable == 1
    write_tokens(path, f"a admin {READER}")
    keeper.look()
    assert keeper.identify(TCP, READER).name == "a"
    assert keeper.statistics().files_unusable == 0


def test_tokens_when_the_first_file_is_broken_then_refused(tmp_path: Path) -> None:
    """A service does not start with a broken tokens file."""
    with pytest.raises(ConfigError, match=r"^access\.tokens_file .* cannot be read"):
        door(tokens_file=tmp_path / "absent")
    with pytest.raises(ConfigError, match=r"^access\.tokens, line 1 must"):
        door("nonsense")


async def test_run_when_asked_then_looks_at_once_and_else_from_time_to_time(tmp_path: Path) -> None:
    """SIGHUP makes the door read its files at once, and a timer does it otherwise."""
    path = write_tokens(tmp_path / "tokens")
    for refresh_ms, is_asked in ((100, False), (1_000_000, True)):
        keeper = door(None, tokens_file=path, refresh_ms=refresh_ms)
        running = asyncio.create_task(keeper.run())
        write_tokens(path)
        if is_asked:
            keeper.ask_to_look()
        await until(lambda: keeper.generation == 1)  # noqa: B023
        running.cancel()
        await asyncio.wait([running])


def test_statistics_then_count_who_came_and_hold_nothing_secret(tmp_path: Path) -> None:
    """The statistics count by role and reason only."""
    pki = Pki(tmp_path)
    end = pki.replace_server()
    keeper = pki.door(tokens=Secret(TOKENS))
    keeper.limits.enter(keeper.identify(TCP, READER))
    keeper.identify(UNIX, None)
    found = keeper.statistics()
    assert found.tokens == 4
    assert found.certificate_not_after_s == end.timestamp()
    assert found.identified == {"reader": 1, "broker": 0, "admin": 1}
    assert set(found.refused.values()) == {0}
    assert set(found.clients) == {"reader"}
    assert READER not in repr(found) + repr(keeper.identify(TCP, READER))
    assert door().statistics().certificate_not_after_s is None


@pytest.mark.parametrize(
    ("left", "level", "said"),
    [
        (timedelta(days=31), None, ""),
        (timedelta(days=30, minutes=-1), "WARNING", "ends in 29 days"),
        (timedelta(minutes=-1), "ERROR", "has ended"),
    ],
    ids=["far", "soon", "over"],
)
def test_certificate_when_it_ends_soon_then_told_once_a_day(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, left: timedelta, level: str | None, said: str
) -> None:
    """The log warns once a day from thirty days before the end, and has an error at the end."""
    now_s = 1_750_000_000.0
    pki = Pki(tmp_path)
    end_s = pki.replace_server().timestamp()
    now_s = end_s - left.total_seconds()
    keeper = Authenticator(AccessSettings(), pki.settings(), wall_s=lambda: now_s)
    for _ in range(3):
        keeper.look()
    if level is None:
        assert caplog.records == []
        return
    (line,) = caplog.records
    assert (line.levelname, said in line.getMessage()) == (level, True)
    now_s += 86_401
    keeper.look()
    assert len(caplog.records) == 2


@pytest.mark.parametrize("how", ["nonsense", "gone", "other-key", "ended", "client-ca"])
def test_certificate_when_the_new_one_is_broken_then_the_old_one_stays_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """Half a change, an expired certificate or none causes one line, and the old one stays."""
    pki = Pki(tmp_path)
    end = pki.replace_server()
    keeper = pki.door(pki.settings("wanted"))  # type: ignore[arg-type]
    if how == "ended":
        pki.replace_server(left=timedelta(days=-1))
    elif how == "gone":
        pki.certificate_file.unlink()
    elif how == "other-key":
        other = trustme.CA().issue_cert("localhost")
        pki.certificate_file.write_bytes(other.cert_chain_pems[0].bytes())
    else:
        path = pki.client_ca_file if how == "client-ca" else pki.certificate_file
        path.write_text("nonsense")
    for _ in range(3):
        keeper.look()
    (line,) = caplog.records
    assert line.getMessage().startswith(
        "the certificate changed and cannot be used; nothing changes: tls."
    )
    found = keeper.statistics()
    assert (found.certificate_not_after_s, found.certificate_failures) == (end.timestamp(), 1)
    pki.replace_client_ca(pki.authority)
    newer = pki.replace_server(left=timedelta(days=500))
    keeper.look()
    found = keeper.statistics()
    assert found.certificate_not_after_s == newer.timestamp()
    assert found.certificate_reloads == 1


def test_key_when_its_password_is_too_long_then_refused_by_name(tmp_path: Path) -> None:
    """A wrong file is named at the start, and costs a service that runs nothing."""
    pki = Pki(tmp_path)
    encrypt(pki.key_file, b"open sesame")
    path = write_tokens(tmp_path / "password", "s" * 1_025)
    with pytest.raises(ConfigError, match=r"^tls\.certificate_file .* cannot be used") as caught:
        pki.door(pki.settings(key_password_file=path))
    assert "sss" not in str(caught.value)
    write_tokens(path, "open sesame")
    keeper = pki.door(pki.settings(key_password_file=path))
    write_tokens(path, "s" * 1_025)
    keeper.look()
    assert keeper.statistics().files_unusable == 1


def test_key_when_encrypted_then_opened_by_its_password(tmp_path: Path) -> None:
    """The key's password comes from a private file or the environment, never from a terminal."""
    pki = Pki(tmp_path)
    encrypt(pki.key_file, b"open sesame")
    with pytest.raises(ConfigError, match=r"^tls\.certificate_file .* cannot be used"):
        pki.door()
    assert pki.door(pki.settings(key_password=Secret("open sesame"))).ssl_context() is not None
    path = write_tokens(tmp_path / "password", "open sesame\n")
    assert pki.door(pki.settings(key_password_file=path)).ssl_context() is not None
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"^tls\.key_password_file .* every user"):
        pki.door(pki.settings(key_password_file=path))


@pytest.mark.parametrize("is_apart", [True, False], ids=["key-file", "one-file"])
def test_key_when_readable_by_all_then_refused(tmp_path: Path, *, is_apart: bool) -> None:
    """A private key that every user may read is refused, with the command that closes it."""
    pki = Pki(tmp_path)
    whole = tmp_path / "whole.pem"
    whole.write_bytes(pki.certificate_file.read_bytes() + pki.key_file.read_bytes())
    for path in (whole, pki.key_file):
        path.chmod(0o644)
    apart = TlsSettings(certificate_file=pki.certificate_file, key_file=pki.key_file)
    together = TlsSettings(certificate_file=whole)
    key = pki.key_file if is_apart else whole
    with pytest.raises(ConfigError, match=rf"every user of the machine.*chmod o= {key}$"):
        pki.door(apart if is_apart else together)
    key.chmod(0o600)
    pki.door(apart if is_apart else together)


def encrypt(path: Path, password: bytes) -> None:
    """Encrypt a private key in place."""
    key = form.load_pem_private_key(path.read_bytes(), None)
    path.write_bytes(
        key.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.BestAvailableEncryption(password)
        )
    )
