"""Where a broker is and how a client gets in: everything that any client is configured with."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiokafka.abc import AbstractTokenProvider

if TYPE_CHECKING:
    from pathlib import Path


class FixedToken(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


@dataclass(frozen=True, slots=True)
class Login:
    bootstrap: str
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None
    token: str | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None

    def for_aiokafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.protocol,
        }
        if self.mechanism is not None:
            settings["sasl_mechanism"] = self.mechanism
        if self.token is not None:
            settings["sasl_oauth_token_provider"] = FixedToken(self.token)
        elif self.mechanism is not None:
            settings["sasl_plain_username"] = self.username
            settings["sasl_plain_password"] = self.password
        if self.ca_file is not None:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file)
            settings["ssl_context"] = context
        return settings
