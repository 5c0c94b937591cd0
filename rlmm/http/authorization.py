"""
The authorization of a request: its sender, and what it may ask for.

A token, or a certificate with a configured name, identifies the sender. A sender without either may
read only where a setting says so and the server listens to this machine alone: a proxy on this
machine would hide the request's own address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.access.peer_credentials import tcp_peer
from rlmm.access.roles import Client, Role
from rlmm.base.loopback import is_loopback
from rlmm.errors import NotPermitted, TooBusy
from rlmm.http.settings import LocalRole

if TYPE_CHECKING:
    from aiohttp import web

    from rlmm.access.authentication import Authenticator
    from rlmm.errors import RlmmError
    from rlmm.http.settings import HttpSettings

LOCAL: Final = Client("this-machine", Role.READER, is_limited=False)
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
_METHOD_CHARS_MAX: Final = 200
_LOCAL_NAMES: Final = {"localhost", "127.0.0.1", "::1"}


class RequestAuthorizer:
    def __init__(self, authenticator: Authenticator, settings: HttpSettings) -> None:
        self._authenticator = authenticator
        self._settings = settings
        self.is_local = False
        """Whether no client of another machine can connect; the listener sets it."""

    def identify(self, request: web.Request) -> Client:
        """Return the sender of *request*; raises `NotPermitted` where it is unknown."""
        transport = request.transport
        if transport is None:
            raise NotPermitted("the connection is gone")
        token = _token(request)
        peer = tcp_peer(transport)
        if token is None and not peer.client_names and self._may_be_anonymous(request):
            return LOCAL
        return self._authenticator.identify(peer, token)

    def admit(self, client: Client, request: web.Request) -> None:
        """
        Let a known client ask once more.

        Raises `NotPermitted` for the client of one broker, which is answered by frames alone, and
        `TooBusy` for a client that asks too often.
        """
        try:
            client.require_broker(None)
            meter = self._authenticator.limits.meter(client)
            if meter is not None:
                meter(0)
        except (NotPermitted, TooBusy) as error:
            self.refused("request", client, request, error)
            raise

    def refused(self, action: str, client: Client, request: web.Request, error: RlmmError) -> None:
        """Note a refusal in the audit log."""
        if request.transport is not None:
            peer = tcp_peer(request.transport)
            method = f"{request.method} {request.path}"[:_METHOD_CHARS_MAX]
            self._authenticator.audit.refuse(action, client, peer, error, method=method)

    def _may_be_anonymous(self, request: web.Request) -> bool:
        transport = request.transport
        assert transport is not None
        return (
            self._settings.local_role is LocalRole.READER
            and self.is_local
            and is_loopback(transport.get_extra_info("peername"))
            and not any(name in request.headers for name in _FORWARDED)
            # A page of the web that gives its own name to this address has that name here.
            and _host_of(request) in _LOCAL_NAMES
        )


def _token(request: web.Request) -> str | None:
    said = request.headers.getall("Authorization", [])
    if not said:
        return None
    if len(said) > 1:
        raise NotPermitted("a request has one Authorization: a proxy may have judged by another")
    scheme, _, token = said[0].strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotPermitted("a token is shown as Authorization: Bearer TOKEN")
    return token.strip()


def _host_of(request: web.Request) -> str:
    host = request.host.rpartition("]")[0].lstrip("[") or request.host.partition(":")[0]
    return host.lower()
