"""A stock broker and an authenticating service over TCP: refusals and replacements in operation."""

from __future__ import annotations

import contextlib
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from tests.kafka.certificates import Authority
from tests.kafka.clients import produce, until
from tests.kafka.ledger import read
from tests.kafka.node import ReservedPort
from tests.kafka.plugin_kafka import plugin_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kafka.jars import Jars

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(60)]
SEGMENTS = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""
WARNINGS_MAX = 3
"""Of one outage: that it is away, and each other sort of reason."""
SAID_S_MAX = 30.0
"""Seconds within which the broker logs, on a busy machine."""
TIER_S_MAX = 60.0
OLD, NEW = "old-token-0123456789", "new-token-0123456789"


class Guarded:
    def __init__(self, jars: Jars, folder: Path, plugins: Path) -> None:
        self._folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True)
        self.closing = contextlib.ExitStack()
        port = ReservedPort()
        self.closing.callback(port.release)
        for name in ("first", "second"):
            (folder / name).mkdir()
        self.first = Authority(folder / "first", "ca")
        self.second = Authority(folder / "second", "ca")
        self.show(self.first)
        self.trust(self.first, "broker-trusts.pem")
        self.trust(self.first, "service-trusts.pem")
        self.place(self.first.vouch_for("broker"), "broker.pem")
        self.take(OLD)
        self.bring(OLD)
        address = f"localhost:{port.number}"
        settings = {
            "rlmm.config.sidecar.address": address,
            "rlmm.config.sidecar.tls.ca.file": str(self.files / "broker-trusts.pem"),
            "rlmm.config.sidecar.tls.certificate.file": str(self.files / "broker.pem"),
            "rlmm.config.sidecar.token.file": str(self.files / "broker.token"),
        }
        self.kafka = self.closing.enter_context(
            plugin_kafka(
                jars, folder / "world", plugins, properties=settings, is_sidecar_started=False
            )
        )
        self.kafka.sidecar.arguments += [
            "--sidecar-listen", address, "--access-unix-role", "none",
            "--access-tokens-file", str(self.files / "tokens"),
            "--access-refresh-ms", str(200),
            "--tls-certificate-file", str(self.files / "service.pem"),
            "--tls-client-certificates", "required",
            "--tls-client-ca-file", str(self.files / "service-trusts.pem"),
        ]  # fmt: skip

    def place(self, made: Path, name: str) -> None:
        beside = self.files / f"{name}.new"
        shutil.copy(made, beside)
        beside.chmod(0o600)
        beside.replace(self.files / name)

    def show(self, authority: Authority) -> None:
        self.place(authority.vouch_for("service"), "service.pem")

    def trust(self, authority: Authority, name: str) -> None:
        self.place(authority.certificate, name)

    def take(self, token: str) -> None:
        self._write("tokens", f"broker-1 broker:1 {token}\n")

    def bring(self, token: str) -> None:
        self._write("broker.token", f"{token}\n")

    def _write(self, name: str, text: str) -> None:
        made = self._folder / name
        made.write_text(text)
        self.place(made, name)

    def warnings(self, position: int) -> list[str]:
        return [
            line
            for line in self.kafka.node.log.since(position)
            if " WARN " in line and "rlmm" in line
        ]

    def says(self, text: str, position: int) -> None:
        line = self.kafka.node.log.wait_for(text, position=position, deadline_s=SAID_S_MAX)
        assert " WARN " in line
        assert "io.rlmm.kafka" in line

    def restart_service(self) -> None:
        self.kafka.sidecar.kill()
        self.kafka.sidecar.start()

    async def begin(self) -> None:
        self.bring(NEW)
        self.kafka.sidecar.start()
        self.says("token", 0)
        self.bring(OLD)
        await self.kafka.create_topic("orders")
        await produce(self.kafka.login, "orders", RECORDS)
        await self.kafka.wait_until_tiered("orders", SEGMENTS, deadline_s=TIER_S_MAX)
        await self.kafka.wait_until_trimmed("orders", deadline_s=TIER_S_MAX)


@pytest.fixture
def guarded(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(kafka_jars, tmp_path / "guarded", plugins)
    with made.closing:
        yield made


async def test_broker_when_token_is_not_known_then_named_in_the_log(guarded: Guarded) -> None:
    """The broker's log names a refused token in one line, and tiers once the file is right."""
    assert guarded.warnings(0), "that the service is away is said at the start"
    await guarded.begin()
    assert len(guarded.warnings(0)) <= 1 + WARNINGS_MAX
    assert guarded.kafka.tiering_errors() == []
    await until_read(guarded)


@pytest.mark.long
async def test_broker_when_tokens_and_certificates_change_then_goes_on(guarded: Guarded) -> None:
    """The log names a revoked token or untrusted authority briefly; no record is lost."""
    await guarded.begin()
    begun_s = time.monotonic()
    # A shorter connection does not end the outage, in which each reason is told once.
    await until(lambda: time.monotonic() - begun_s > 2.5, "the connection has lasted")
    log = guarded.kafka.node.log
    position = log.position
    guarded.take(NEW)  # the connection that was opened with the old one ends
    guarded.says("token", position)
    assert len(guarded.warnings(position)) <= WARNINGS_MAX
    guarded.bring(NEW)
    await until_read(guarded)

    position = log.position
    guarded.show(guarded.second)
    guarded.restart_service()
    guarded.says("PKIX", position)
    assert len(guarded.warnings(position)) <= WARNINGS_MAX
    guarded.trust(guarded.second, "broker-trusts.pem")
    await until_read(guarded)

    position = log.position
    guarded.trust(guarded.second, "service-trusts.pem")
    guarded.restart_service()
    guarded.says("certificate", position)
    assert len(guarded.warnings(position)) <= WARNINGS_MAX
    guarded.place(guarded.second.vouch_for("broker"), "broker.pem")
    await until_read(guarded)
    assert all("reading the remote data" in one for one in log.errors()), log.errors()


async def until_read(guarded: Guarded) -> None:
    found = await read(guarded.kafka.login, "orders", "read_uncommitted")
    assert [one.value for one in found] == RECORDS
