"""The commands on `docs/security.md`: the tests run them and compare the results with the page."""

from __future__ import annotations

import re
import ssl
import subprocess
from typing import TYPE_CHECKING

from rlmm.access.authentication import Authenticator
from rlmm.access.certificates import names_of
from rlmm.access.roles import Peer, Role
from rlmm.config.loading import load
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
    assert (client.name, client.role, client.broker_id) == ("broker-7", Role.BROKER, 7)
