"""Certificates and tokens of a test, in files, and the door that they are for."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import trustme

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, ClientCertificates, TlsSettings

if TYPE_CHECKING:
    from pathlib import Path

READER, BROKER, BOUND, ADMIN = (
    f"{name}-token-0123456789" for name in ("reader", "broker", "bound", "admin")
)
TOKENS = f"""\
reader reader {READER}
broker broker {BROKER}
broker-7 broker:7 {BOUND}
ops admin {ADMIN}
"""


def write_tokens(path: Path, text: str = TOKENS) -> Path:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.chmod(0o600)
    beside.replace(path)
    return path


class Pki:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.certificate_file = folder / "server.pem"
        self.key_file = folder / "server.key"
        self.client_ca_file = folder / "clients.pem"
        self.replace_server()
        self.replace_client_ca(self.authority)

    def replace_server(
        self, authority: trustme.CA | None = None, left: timedelta = timedelta(days=365)
    ) -> datetime:
        end = (datetime.now(tz=UTC) + left).replace(microsecond=0)
        made = (authority or self.authority).issue_cert(
            "localhost", "127.0.0.1", not_after=end, not_before=end - timedelta(days=9_999)
        )
        self._replace(self.key_file, made.private_key_pem.bytes())
        self._replace(self.certificate_file, b"".join(pem.bytes() for pem in made.cert_chain_pems))
        return end

    def replace_client_ca(self, authority: trustme.CA) -> None:
        self._replace(self.client_ca_file, authority.cert_pem.bytes())

    def settings(
        self, client_certificates: ClientCertificates = ClientCertificates.NONE, **options: Any
    ) -> TlsSettings:
        asks = client_certificates is not ClientCertificates.NONE
        return TlsSettings(
            certificate_file=self.certificate_file,
            key_file=self.key_file,
            client_certificates=client_certificates,
            client_ca_file=self.client_ca_file if asks else None,
            **options,
        )

    def door(self, tls: TlsSettings | None = None, **access: Any) -> Authenticator:
        return Authenticator(AccessSettings(**access), tls or self.settings())

    def client(
        self,
        *names: str,
        common_name: str | None = None,
        authority: trustme.CA | None = None,
        signed_by: trustme.CA | None = None,
        not_after: datetime | None = None,
    ) -> ssl.SSLContext:
        context = ssl.create_default_context()
        (authority or self.authority).configure_trust(context)
        if names or common_name is not None:
            not_before = None if not_after is None else not_after - timedelta(days=1)
            made = (signed_by or self.authority).issue_cert(
                *names, common_name=common_name, not_after=not_after, not_before=not_before
            )
            made.configure_cert(context)
        return context

    @staticmethod
    def _replace(path: Path, data: bytes) -> None:
        beside = path.with_name(f"{path.name}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        beside.replace(path)
