"""The service as `deploy/` runs it: only its volume can be written, and brokers connect by TCP."""

from __future__ import annotations

import os
import signal
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.access.tokens import read_tokens_file
from rlmm.errors import NotPermitted
from rlmm.wire.values import partition_value
from tests.support.builders import tp
from tests.support.repository.deployment import container, manifest
from tests.support.server.access_files import BOUND, Pki, write_tokens
from tests.support.server.raw_frames import connected
from tests.support.server.serve_process import PLACES, fill, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_ONLY = """\
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(done):
    if done:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
CLONE_NEWNS, PRIVATE, BIND, REMOUNT, RDONLY = 0x20000, (1 << 18) | 0x4000, 0x1000, 0x20, 1
volume = sys.argv[1].encode()
call(libc.unshare(CLONE_NEWNS))
call(libc.mount(b"none", b"/", None, PRIVATE, None))
call(libc.mount(volume, volume, None, BIND, None))
call(libc.mount(b"none", b"/", None, REMOUNT | BIND | RDONLY, None))
if os.path.ismount("/tmp"):
    call(libc.mount(b"none", b"/tmp", None, REMOUNT | BIND | RDONLY, None))
try:
    open(os.path.join(sys.argv[2], "probe"), "w")
except OSError:
    os.execv(sys.argv[3], sys.argv[3:])
raise SystemExit("it can be written")
"""
"""Runs a program where it can write into one folder only, in a mount namespace of its own."""


def can_mount() -> bool:
    command = [sys.executable, "-c", READ_ONLY, "/dev/shm", "/", "/bin/true"]
    return os.spawnv(os.P_WAIT, sys.executable, command) == 0


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "volume"
    path.mkdir()
    yield path
    path.chmod(0o700)


async def test_serve_when_only_its_volume_is_writable_then_ok(tmp_path: Path, volume: Path) -> None:
    """The service writes only to its volume, under a read-only root file system where possible."""
    home = tmp_path / "home"
    home.mkdir()
    await fill(volume)
    before: list[str] = []
    if can_mount():
        before = [sys.executable, "-c", READ_ONLY, str(volume), str(tmp_path)]
    home.chmod(0o500)
    variables = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        arguments = ("--data-dir", str(volume / "rlmm-data"))
        async with serving(home, *arguments, before=before) as served:
            await served.until_open(PLACES)
            served.send(signal.SIGUSR1)
            await served.until(f"{PLACES} snapshots written")
            assert await served.end(signal.SIGTERM) == 0
    assert served.said == []
    assert list(home.iterdir()) == []
    assert len(list((volume / "rlmm-data/snapshots").rglob("*.snapshot"))) == PLACES


async def test_broker_when_it_connects_as_deployed_then_needs_tls(tmp_path: Path) -> None:
    """Broker 7 connects with TLS and its token under the deployed configuration."""
    text: str = manifest("brokers/configmap.yaml", "ConfigMap")["data"]["rlmm.toml"]
    pki = Pki(tmp_path)
    places = {
        "/etc/rlmm/tls/tls.crt": str(pki.certificate_file),
        "/etc/rlmm/tls/tls.key": str(pki.key_file),
        "/etc/rlmm/tokens/tokens": str(write_tokens(tmp_path / "tokens")),
        "/var/lib/rlmm": str(tmp_path / "rlmm-data"),
        "0.0.0.0:7404": "127.0.0.1:0",
        "0.0.0.0:7405": "none",
    }
    head, found, tail = text.partition("[kafka]")
    assert found
    text = head + tail[tail.index("\n[") :]
    for said, here in places.items():
        assert said in text
        text = text.replace(said, here)
    file = tmp_path / "rlmm.toml"
    file.write_text(text)
    await fill(tmp_path)
    trusting = ssl.create_default_context()
    pki.authority.configure_trust(trusting)
    mounts = {
        one["mountPath"]
        for folder in ("base", "brokers")
        for one in container(f"{folder}/deployment.yaml")["volumeMounts"]
    }
    assert {str(Path(path).parent) for path in list(places)[:3]} <= mounts
    async with serving(tmp_path, "--config", str(file)) as served:
        line = await served.until(", with TLS")
        port = int(str(line["message"]).rpartition(":")[2].partition(",")[0])
        await served.until_open(PLACES)
        address = ("127.0.0.1", port)
        async with connected(address, trusting) as broker:
            said = await broker.hello(token=BOUND, broker_id=7)
            assert (said["role"], said["mode"]) == ("broker", "serve")
            orders = partition_value(tp())
            await broker.call("assign", [orders], [], True)
            await broker.call("wait_ready", orders)
            assert len((await broker.call("list_segments", orders, None, 100))[0]) > 0
        async with connected(address, trusting) as other:
            with pytest.raises(NotPermitted):
                await other.hello(token=BOUND, broker_id=8)
        async with connected(address, trusting) as stranger:
            with pytest.raises(NotPermitted):
                await stranger.hello()
        async with connected(address) as plain:
            plain.send("hello", {"versions": [1], "client": "test", "token": BOUND})
            assert await plain.ended()
        assert await served.end(signal.SIGTERM) == 0


def test_deployed_tokens_have_the_form_that_is_read(tmp_path: Path) -> None:
    """The example of the secret is a file of tokens, one for each broker, once it has digests."""
    secret = manifest("brokers/secret-example.yaml", "Secret")["stringData"]["tokens"]
    for number in range(3):
        secret = secret.replace(f"REPLACE-ME-{number}", f"{number:064x}")
    grants = read_tokens_file(write_tokens(tmp_path / "tokens", secret)).values()
    assert {grant.broker_id for grant in grants} == {0, 1, None}
