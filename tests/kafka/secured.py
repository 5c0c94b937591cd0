"""
One broker with a listener of every kind, the first without security, and logins right and wrong.
"""

from __future__ import annotations

import base64
import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from rlmm.base.closing import ClosedByWith
from tests.kafka.certificates import Authority
from tests.kafka.login import Login
from tests.kafka.node import ONE_NODE, PATIENT, Node
from tests.kafka.process import run_java
from tests.kafka.tools import STORAGE, Tools

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.jars import Jars
    from tests.kafka.process import ProcessLog

ALLOWED, POWERLESS = "alice", "bob"
"""Who may do everything with topics and groups, and who may get in and do nothing."""

TOKEN_LIFE_S = 3_600

LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "TLS": "SSL",
    "MUTUAL": "SSL",
}

_MODULES = "org.apache.kafka.common.security"
_PASSWORDS = " ".join(f'user_{name}="{name}-password"' for name in (ALLOWED, POWERLESS))
_MODULE_OF = {
    "plain": f"{_MODULES}.plain.PlainLoginModule required {_PASSWORDS};",
    "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": (
        f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="broker";'
    ),
}
_TOKEN_CHECK = (
    f"{_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


class Way(StrEnum):
    PLAIN = "PLAIN"
    SCRAM_256 = "SCRAM-SHA-256"
    SCRAM_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    PLAIN_OVER_TLS = "PLAIN over TLS"
    SCRAM_512_OVER_TLS = "SCRAM-SHA-512 over TLS"
    OAUTHBEARER_OVER_TLS = "OAUTHBEARER over TLS"
    TLS = "TLS"
    """The broker proves itself and the client does not: it is nobody, and may do everything."""
    MUTUAL_TLS = "mutual TLS"

    @property
    def listener(self) -> str:
        if self in {Way.TLS, Way.MUTUAL_TLS}:
            return self.name.removesuffix("_TLS")
        return "SASLTLS" if self.endswith("over TLS") else "SASL"

    @property
    def mechanism(self) -> str | None:
        return self.removesuffix(" over TLS") if self.listener.startswith("SASL") else None


def unsecured_token(subject: str, *, issued_at_s: float, life_s: float = TOKEN_LIFE_S) -> str:
    """Return a token without a signature, which Kafka's test validator accepts until it expires."""
    claims = {"sub": subject, "iat": int(issued_at_s), "exp": int(issued_at_s + life_s)}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


class SecuredKafka(ClosedByWith):
    def __init__(self, jars: Jars, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._keys = folder / "keys"
        self._keys.mkdir()
        self._authority = Authority(self._keys, "authority")
        self._stranger = Authority(self._keys, "stranger")
        for name in ("localhost", ALLOWED, POWERLESS):
            self._authority.vouch_for(name)
        self._stranger.vouch_for("mallory")
        self.node = Node(
            jars,
            folder / "broker",
            listeners=LISTENERS,
            properties={**ONE_NODE, **PATIENT, **self._properties()},
        )

    def _properties(self) -> dict[str, str]:
        properties = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keys / "localhost.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/",
            "ssl.truststore.location": str(self._authority.certificate),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(name.upper() for name in _MODULE_OF),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "false",
        }
        for listener in ("sasl", "sasltls"):
            for mechanism, module in _MODULE_OF.items():
                prefix = f"listener.name.{listener}.{mechanism}"
                properties[f"{prefix}.sasl.jaas.config"] = module
            check = f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"
            properties[check] = _TOKEN_CHECK
        return properties

    def start(self) -> Self:
        self.node.write_configuration()
        scram = [
            argument
            for name in (ALLOWED, POWERLESS)
            for mechanism in (Way.SCRAM_256, Way.SCRAM_512)
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={name}-password]")
        ]
        where = ("--cluster-id", self.node.cluster_id, "--config", str(self.node.configuration))
        run_java(self.node.jars, STORAGE, "format", *where, *scram)
        self.node.start()
        self.allow(ALLOWED)
        return self

    def allow(self, name: str, *operations: str, topic: str = "*") -> None:
        who = f"--allow-principal=User:{name}"
        what = [f"--operation={operation}" for operation in operations or ("All",)]
        everywhere = [] if operations else ["--group=*", "--transactional-id=*", "--cluster"]
        self.tools.acls("--add", who, *what, f"--topic={topic}", *everywhere)

    @property
    def logs(self) -> list[ProcessLog]:
        return self.node.logs

    @property
    def tools(self) -> Tools:
        return self.node.tools

    @property
    def admin_login(self) -> Login:
        return self.node.login

    def login(self, way: Way, name: str = ALLOWED) -> Login:
        return self._login(
            way,
            username=name,
            password=f"{name}-password",
            token=unsecured_token(name, issued_at_s=time.time()),
            certificate_file=self._keys / f"{name}.pem",
            authority=self._authority,
        )

    def powerless_login(self, way: Way) -> Login:
        assert way is not Way.TLS, "a client without a certificate is nobody in particular"
        return self.login(way, POWERLESS)

    def wrong_login(self, way: Way) -> Login:
        """Return a login that fails: wrong password, expired token, foreign certificate."""
        return self._login(
            way,
            username=ALLOWED,
            password="wrong",
            token=unsecured_token(ALLOWED, issued_at_s=time.time() - 2 * TOKEN_LIFE_S),
            certificate_file=self._keys / "mallory.pem",
            authority=self._stranger if way is Way.TLS else self._authority,
        )

    def _login(
        self,
        way: Way,
        *,
        username: str,
        password: str,
        token: str,
        certificate_file: Path,
        authority: Authority,
    ) -> Login:
        by_token = way.mechanism == Way.OAUTHBEARER
        by_password = way.mechanism is not None and not by_token
        return Login(
            self.node.address(way.listener),
            LISTENERS[way.listener],
            mechanism=way.mechanism,
            username=username if by_password else None,
            password=password if by_password else None,
            token=token if by_token else None,
            ca_file=authority.certificate if way.listener.endswith(("TLS", "MUTUAL")) else None,
            certificate_file=certificate_file if way is Way.MUTUAL_TLS else None,
        )

    def close(self) -> None:
        self.node.close()
