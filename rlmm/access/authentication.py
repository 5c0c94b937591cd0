"""
Authentication of clients: which client has connected to a listener, and what it may do.

Invariant: a shown token must be known, on every listener. A client without credentials has only the
rights of the transport, and a network transport gives none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from rlmm.access.audit import AuditLog
from rlmm.access.handshakes import Handshakes
from rlmm.access.limits import ClientLimits
from rlmm.access.roles import NAME_KINDS, Client, Grant, Role, grant_of, read_grants
from rlmm.access.settings import UnassignedWrites, UnixRole
from rlmm.access.tls import ServerTls
from rlmm.access.tokens import Tokens, digest_of, read_tokens, read_tokens_file
from rlmm.access.watched_files import FromFiles
from rlmm.errors import ConfigError, NotPermitted

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from rlmm.access.limits import ClientFigures
    from rlmm.access.roles import Peer
    from rlmm.access.settings import AccessSettings, TlsSettings

_log = logging.getLogger(__name__)

UNIX_CLIENT: Final = "unix-socket"
OWN_CLIENT: Final = "own-token"
REFUSALS: Final = ("no-credentials", "plaintext-token", "unknown-certificate", "unknown-token")


@dataclass(frozen=True, slots=True)
class AccessStatistics:
    tokens: int
    tokens_reloads: int
    tokens_failures: int
    certificate_not_after_s: int | None
    certificate_reloads: int
    certificate_failures: int
    files_unusable: int
    """Of tokens and of certificates: how many cannot be used as they are now."""
    identified: Mapping[str, int]
    refused: Mapping[str, int]
    clients: Mapping[str, ClientFigures]
    """By name, as many as have grants."""
    handshakes: Mapping[str, Mapping[str, int]]
    audit_lost: int
    """Entries of the audit log that were not written, as too many waited."""


class Authenticator:
    """Authenticates clients, limits them, and holds the TLS context of TCP listeners."""

    def __init__(
        self,
        access: AccessSettings,
        tls: TlsSettings,
        *,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
        own_token: str | None = None,
    ) -> None:
        """Read the settings' files; a client with *own_token* may read. Raises `ConfigError`."""
        self._settings = access
        self._grants = read_grants(access.client_names)
        _warn_of_any_kind(self._grants)
        self._said = {} if access.tokens is None else read_tokens(access.tokens.value, _VARIABLE)
        self._own = Tokens({})
        if own_token is not None:
            self.take_own(own_token)
        path = access.tokens_file
        self._tokens = FromFiles("the file of tokens", [] if path is None else [path], self._read)
        self._tls = None if tls.certificate_file is None else ServerTls(tls, wall_s)
        self._handshakes: dict[str, Handshakes] = {}
        self._asked = asyncio.Event()
        self.audit = AuditLog(is_on=access.audit)
        self._identified: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self.limits = ClientLimits(
            access.client_connections_max, access.client_requests_per_second_max, now_s
        )
        self.generation = 0
        """Rises when credentials change, so that admitted clients are checked again."""

    def take_own(self, token: str) -> None:
        """Accept *token*, which the service generated itself, for reading from now on."""
        self._own = Tokens({digest_of(token): Grant(OWN_CLIENT, Role.READER)})

    # ---------------------------------------------------------------------------- who it is

    def identify(self, peer: Peer, token: str | None) -> Client:
        """Return the client behind a peer; raises `NotPermitted` for a client without rights."""
        client = self._by_token(peer, token) if token is not None else self._by_peer(peer)
        self._identified[client.role] += 1
        return client

    def is_valid(self, client: Client) -> bool:
        if client.token_digest is None:
            return True
        digest = client.token_digest
        grant = self._tokens.value.grant_of(digest) or self._own.grant_of(digest)
        return grant == Grant(client.name, client.role, client.broker_id)

    def _by_token(self, peer: Peer, token: str) -> Client:
        if not (peer.is_private or self._settings.plaintext_tokens):
            self._refuse(
                peer,
                "plaintext-token",
                "a token that comes over a network must come by TLS: set tls.certificate_file, and "
                "take another token, as this one may have been read",
            )
        found = self._tokens.value.find(token) or self._own.find(token)
        if found is None:
            self._refuse(peer, "unknown-token", "this token is not known here")
        digest, grant = found
        return Client(grant.name, grant.role, grant.broker_id, token_digest=digest)

    def _by_peer(self, peer: Peer) -> Client:
        for name in peer.client_names:
            grant = grant_of(name, self._grants)
            if grant is not None:
                return Client(grant.name, grant.role, grant.broker_id)
        if peer.transport == "unix" and self._settings.unix_role != UnixRole.NONE:
            return Client(UNIX_CLIENT, Role(self._settings.unix_role), is_limited=False)
        if peer.client_names:
            self._refuse(
                peer,
                "unknown-certificate",
                "the certificate is trusted, and access.client_names gives no name of it a role",
            )
        way = "through the Unix socket" if peer.transport == "unix" else "over TCP"
        return self._refuse(
            peer, "no-credentials", f"a token is needed {way}, or a certificate that has a role"
        )

    def _refuse(self, peer: Peer, reason: str, message: str) -> NoReturn:
        self._refused[reason] += 1
        _log.debug("not let in from %s: %s", peer.where, reason)
        error = NotPermitted(message)
        self.audit.refuse("credentials", None, peer, error, reason=reason)
        raise error

    @property
    def refuses_unassigned(self) -> bool:
        """Whether no client may store an event of a partition that is not assigned."""
        return self._settings.unassigned_writes is UnassignedWrites.REFUSE

    @property
    def knows_somebody(self) -> bool:
        return bool(len(self._tokens.value) or len(self._own) or self._grants)

    # ------------------------------------------------------------------------------- files

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of TCP listeners, kept up to date; `None` without TLS."""
        return None if self._tls is None else self._tls.context

    def handshakes(self, listener: str, timeout_s: float) -> Handshakes | None:
        """Return the TLS handshakes of *listener*; `None` without TLS."""
        if self._tls is None:
            return None
        made = Handshakes(self._tls.context, timeout_s)
        self._handshakes[listener] = made
        return made

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.refresh_ms / 1_000):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            await asyncio.to_thread(self.look)

    def ask_to_look(self) -> None:
        self._asked.set()

    def look(self) -> None:
        if self._tokens.look():
            self.generation += 1
        if self._tls is not None:
            self._tls.look()

    def _read(self, _: Tokens | None) -> Tokens:
        path = self._settings.tokens_file
        grants = dict(self._said)
        for digest, grant in ({} if path is None else read_tokens_file(path)).items():
            if grants.setdefault(digest, grant) != grant:
                msg = f"access.tokens_file {path} must not have a token of access.tokens"
                raise ConfigError(msg)
        return Tokens(grants)

    # ----------------------------------------------------------------------------- figures

    def statistics(self) -> AccessStatistics:
        tls = self._tls
        names = self._tokens.value.names | self._own.names
        self.limits.keep({*names, *self._grants, UNIX_CLIENT})
        return AccessStatistics(
            tokens=len(self._tokens.value) + len(self._own),
            tokens_reloads=self._tokens.reloads,
            tokens_failures=self._tokens.failures,
            certificate_not_after_s=None if tls is None else tls.validity.not_after_s,
            certificate_reloads=0 if tls is None else tls.reloads,
            certificate_failures=0 if tls is None else tls.failures,
            files_unusable=self._tokens.is_unusable + (tls is not None and tls.is_unusable),
            identified={role: self._identified[role] for role in Role},
            refused={reason: self._refused[reason] for reason in REFUSALS},
            clients=self.limits.figures(),
            handshakes={name: one.counts for name, one in self._handshakes.items()},
            audit_lost=self.audit.lost,
        )


def _warn_of_any_kind(grants: Mapping[str, Grant]) -> None:
    names = [name for name in grants if not name.startswith(NAME_KINDS)]
    if names:
        _log.warning(
            "access.client_names gives a role to a name of any kind (URI, DNS name or common "
            "name): write %s before each of %s",
            ", ".join(NAME_KINDS),
            ", ".join(names),
        )


_VARIABLE: Final = "access.tokens"
