"""
Certificates of an authority in PEM files with a key (PKCS#8), for Kafka's key store and Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    def __init__(self, folder: Path, name: str) -> None:
        self._authority = trustme.CA()
        self._folder = folder
        self.certificate = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.certificate))

    def vouch_for(self, name: str) -> Path:
        issued = self._authority.issue_cert("localhost", "127.0.0.1", common_name=name)
        key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
        form = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file = self._folder / f"{name}.pem"
        file.write_bytes(form + b"".join(part.bytes() for part in issued.cert_chain_pems))
        return file
