"""Rights of a sidecar's client: tokens from files, certificates, authorities."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, ClientCertificates
from rlmm.errors import LogNotPermitted
from spark_tiering.segment_sources.opening import open_source
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarFiles
from spark_tiering.segment_sources.sidecar_http import Endpoint
from tests.integration.http.test_access import door_of
from tests.integration.spark_tiering.test_sidecar_source import files_at, found_at, write_token
from tests.support.partitions.broker_folders import (
    PARTITION,
    SECOND,
    serving_folders,
    write_example,
)
from tests.support.server.access_files import BOUND, READER, Pki, write_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = f"{SECOND}.log"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_example(tmp_path / "kafka-logs")


@pytest.mark.parametrize("kind", ["none", "wrong", "of one broker", "no such file", "two words"])
async def test_source_with_a_wrong_token_fails(root: Path, tmp_path: Path, kind: str) -> None:
    """A refused token fails at once for the operator to act, without repeating the token."""
    tokens = {"wrong": "wrong-token-0123456789", "of one broker": BOUND, "two words": "a b"}
    token = tokens.get(kind)
    token_file = "" if kind == "none" else str(tmp_path / "token")
    if token is not None:
        write_token(tmp_path / "token", token)
    async with serving_folders(root, of_http={"door": await door_of(tmp_path)}) as broker:
        settings = SidecarSourceSettings((broker.url,), token_file=token_file)
        files = SidecarFiles(Endpoint(broker.url, settings), str(root), PARTITION)
        asks: list[Callable[[], object]] = [
            open_source(settings).partitions, files.facts, lambda: files.read(LOG, 0, 1),
        ]  # fmt: skip
        for ask in asks:
            with pytest.raises(LogNotPermitted) as refused:
                await asyncio.to_thread(ask)
            assert token is None or token not in str(refused.value)


async def test_source_when_its_token_is_replaced_shows_it(root: Path, tmp_path: Path) -> None:
    """A source reads its token for every request, so that a rotation needs no restart."""
    path = tmp_path / "token"
    door = await door_of(tmp_path)
    async with serving_folders(root, of_http={"door": door}) as broker:
        files = await files_at(broker, write_token(path, READER))

        def rotated() -> bytes:
            files.read(LOG, 0, 1)
            write_tokens(tmp_path / "tokens", "tier reader another-token-0123456789\n")
            door.look()
            with pytest.raises(LogNotPermitted):
                files.read(LOG, 0, 1)
            write_token(path, "another-token-0123456789")
            return files.read(LOG, 0, 7)

        assert len(await asyncio.to_thread(rotated)) == 7


async def test_source_and_sidecar_authenticate_by_tls(root: Path, tmp_path: Path) -> None:
    """Source and sidecar authenticate by TLS, the source by token or certificate."""
    token_file = write_token(tmp_path / "token", READER)

    def made() -> tuple[Authenticator, Pki]:
        pki = Pki(tmp_path)
        write_tokens(tmp_path / "tokens")
        settings = pki.settings(ClientCertificates.WANTED)
        access = AccessSettings(tokens_file=tmp_path / "tokens", client_names=("DNS:tier=reader",))
        issued = pki.authority.issue_cert("tier")
        (tmp_path / "ours.key").touch(0o600)
        (tmp_path / "ours.key").write_bytes(issued.private_key_pem.bytes())
        (tmp_path / "ours.pem").write_bytes(issued.cert_chain_pems[0].bytes())
        return Authenticator(access, settings), pki

    door, pki = await asyncio.to_thread(made)
    ours: dict[str, Any] = {
        "certificate_file": str(tmp_path / "ours.pem"), "key_file": str(tmp_path / "ours.key"),
    }  # fmt: skip
    trusting = {"ca_file": str(pki.client_ca_file)}
    ssl_context = await asyncio.to_thread(pki.client)
    async with serving_folders(root, of_http={"door": door, "ssl": ssl_context}) as broker:
        assert broker.url.startswith("https://")

        def read(**options: Any) -> int:
            (found,) = found_at(broker, **{"token_file": "", **options})
            return len(found.files.read(LOG, 0, 100))

        assert await asyncio.to_thread(lambda: read(**trusting, token_file=token_file)) == 100
        assert await asyncio.to_thread(lambda: read(**trusting, **ours)) == 100
        for options in (
            {"token_file": token_file},
            trusting,
            {"ca_file": token_file, "token_file": token_file},
            {**trusting, **ours, "key_file": token_file},
        ):
            with pytest.raises(LogNotPermitted):
                await asyncio.to_thread(read, **options)
