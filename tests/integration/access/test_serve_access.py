"""`rlmm serve` with tokens and certificates: its behaviour, and its output."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.access.authentication import Authenticator
from rlmm.access.roles import Peer, Role
from rlmm.access.tls import names_of
from rlmm.cli.main import cli
from rlmm.config.loading import load
from rlmm.errors import NotPermitted
from tests.support.repository.tree import ROOT
from tests.support.server.access_files import (
    ADMIN,
    BOUND,
    BROKER,
    READER,
    TOKENS,
    Pki,
    write_tokens,
)
from tests.support.server.raw_frames import connected
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from pathlib import Path


NEW = "renewed-token-0123456789"
WRONG = "wrong-token-0123456789"
PASSWORD = "the-password-of-a-key"


async def said_to(address: tuple[str, int], tls: ssl.SSLContext, token: str) -> str:
    """Return the role of a token, or the code of the refusal."""
    async with connected(address, tls) as client:
        try:
            return str((await client.hello(token=token))["role"])
        except NotPermitted as error:
            return error.code


async def test_serve_when_files_are_replaced_then_new_ones_count_unshown(tmp_path: Path) -> None:
    """New tokens and certificates count without a restart, and no debug line has a token."""
    pki = Pki(tmp_path)
    tokens = write_tokens(tmp_path / "tokens")
    flags = {
        "--log-kind": "memory",
        "--sidecar-listen": "127.0.0.1:0",
        "--access-tokens-file": str(tokens),
        "--access-refresh-ms": "1h",
        "--tls-certificate-file": str(pki.certificate_file),
        "--tls-key-file": str(pki.key_file),
        "--logging-level": "debug",
    }
    given = [word for pair in flags.items() for word in pair]
    async with serving(tmp_path, *given) as served:
        line = await served.until(", with TLS")
        port = int(line["message"].removesuffix(", with TLS").rpartition(":")[2])
        address, tls = ("127.0.0.1", port), pki.client()
        assert await said_to(address, tls, READER) == "reader"
        assert await said_to(address, tls, WRONG) == NotPermitted.code
        write_tokens(tokens, TOKENS.replace(READER, NEW))
        pki.authority = type(pki.authority)()
        pki.replace_server()
        served.send(signal.SIGHUP)
        await served.until("the file of tokens changed and was read again")
        await served.until("the certificate changed and was read again")
        tls = pki.client()
        assert await said_to(address, tls, NEW) == "reader"
        assert await said_to(address, tls, READER) == NotPermitted.code
        write_tokens(tokens, f"a reader {WRONG}\nb reader {WRONG}\n")
        served.send(signal.SIGHUP)
        await served.until("nothing changes: access.tokens_file")
        assert await said_to(address, tls, NEW) == "reader"
        assert await served.end(signal.SIGTERM) == 0
    told = repr(served.lines) + repr(served.said)
    assert [token for token in (READER, BROKER, BOUND, ADMIN, NEW, WRONG) if token in told] == []


async def test_serve_when_a_client_is_refused_then_its_log_has_one_line_of_json(
    tmp_path: Path,
) -> None:
    """The audit log of a running service is in its log lines, one JSON object for an entry."""
    tokens = write_tokens(tmp_path / "tokens")
    given = ("--log-kind", "memory", "--access-tokens-file", str(tokens), "--sidecar-listen")
    async with serving(tmp_path, *given, "127.0.0.1:0") as served:
        line = await served.until("listening at 127.0.0.1:")
        port = int(line["message"].rpartition(":")[2])
        async with connected(("127.0.0.1", port)) as client:
            with pytest.raises(NotPermitted):
                await client.hello(token=WRONG)
        line = await served.until("audit: credentials refused: unknown-token")
        assert await served.end(signal.SIGTERM) == 0
    assert line["logger"] == "rlmm.audit"
    assert line["address"] == "127.0.0.1"
    assert WRONG not in repr(served.lines)


async def test_serve_when_tokens_cannot_be_used_then_ends_with_the_key(tmp_path: Path) -> None:
    """The process ends with exit code 2 before it listens, and its error hides the token."""
    tokens = write_tokens(tmp_path / "tokens", f"reader {NEW}\n")
    given = ("--log-kind", "memory", "--access-tokens-file", str(tokens))
    async with serving(tmp_path, *given) as served:
        assert await served.end() == 2
    told = repr(served.lines) + repr(served.said)
    assert "access.tokens_file" in told
    assert NEW not in told
    assert "listening" not in told


def test_config_show_then_shows_no_token_and_no_password() -> None:
    """Neither the printed configuration nor its refusal shows a secret."""
    runner = CliRunner()
    environment = {
        "RLMM_ACCESS_TOKENS": TOKENS.replace("\n", ";"),
        "RLMM_TLS_CERTIFICATE_FILE": "server.pem",
        "RLMM_TLS_KEY_PASSWORD": PASSWORD,
    }
    for broken in ({}, {"RLMM_ACCESS_REFRESH_MS": "1"}, {"RLMM_TLS_CERTIFICATE_FILE": ""}):
        found = runner.invoke(cli, ["config", "show"], env={**environment, **broken})
        assert (found.exit_code == 0) == (not broken), found.output
        secrets = (READER, BROKER, BOUND, ADMIN, PASSWORD)
        assert [secret for secret in secrets if secret in found.output] == []
    shown = runner.invoke(cli, ["config", "show"], env=environment).output
    lines = [line.split() for line in shown.splitlines()]
    assert ["access.tokens", "***", "environment"] in lines
    assert ["tls.key_password", "***", "environment"] in lines


PAGE = (ROOT / "docs/security.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(commands: str, folder: Path) -> None:
    """Run *commands* in *folder*."""
    subprocess.run(["sh", "-eu", "-c", commands], cwd=folder, check=True, capture_output=True)


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Return the server's side of a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server, server_hostname="rlmm.example.org")
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours


def test_security_page_then_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and configuration of the page fit each other, and the file modes are right."""
    for commands in blocks("sh"):
        run(commands, tmp_path)
    monkeypatch.chdir(tmp_path)
    (said,) = blocks("toml")
    (tmp_path / "rlmm.toml").write_text(said + 'tokens_file = "tokens"\n')
    config = load(file=tmp_path / "rlmm.toml").config
    door = Authenticator(config.access, config.tls)
    token = (tmp_path / "broker-7.token").read_text().strip()
    client = door.identify(Peer("tcp"), token)
    assert (client.name, client.role, client.broker_id) == ("broker-7", Role.BROKER, 7)

    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
    server = door.ssl_context()
    assert server is not None
    names = names_of(shaken(server, context).getpeercert() or {})
    client = door.identify(Peer("tcp", client_names=names), None)
    assert (client.name, client.role, client.broker_id) == ("CN:broker-7", Role.BROKER, 7)
