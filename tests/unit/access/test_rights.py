"""Rights of clients: roles, limits, and the settings of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlmm.access.limits import ClientFigures, ClientLimits, TokenBucket
from rlmm.access.roles import Client, Grant, Role, read_grant, read_grants
from rlmm.access.settings import AccessSettings, ClientCertificates, TlsSettings
from rlmm.base.secret import Secret
from rlmm.config.loading import load
from rlmm.errors import ConfigError, NotPermitted, TooBusy
from rlmm.wire.hello import ROLES


def test_roles_then_are_those_of_the_protocol_and_each_may_what_the_one_before_may() -> None:
    """Each of reader, broker and administrator has the rights of the one before."""
    assert tuple(Role) == ROLES
    allowed = {role.value: [least for least in ("any", *ROLES) if role.may(least)] for role in Role}
    assert allowed == {
        "reader": ["any", "reader"],
        "broker": ["any", "reader", "broker"],
        "admin": ["any", "reader", "broker", "admin"],
    }


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("least", ["any", *ROLES])
def test_require_role_when_less_than_asked_then_refused_by_name(role: Role, least: str) -> None:
    """The refusal names the method, the required role and the present one."""
    client = Client("c", role)
    if role.may(least):
        client.require_role(least, "assign")
        return
    with pytest.raises(NotPermitted, match=f"^assign takes the role {least}, this one is {role}$"):
        client.require_role(least, "assign")


@pytest.mark.parametrize(
    ("client", "broker_id", "refusal"),
    [
        (Client("c", Role.BROKER), 5, None),
        (Client("c", Role.BROKER), None, None),
        (Client("c", Role.BROKER, 5), 5, None),
        (Client("c", Role.BROKER, 5), 6, "c speaks for broker 5 only, and named 6"),
        (Client("c", Role.BROKER, 5), None, "c speaks for broker 5 only, and named none"),
        (Client("c", Role.BROKER, 0), 1, "c speaks for broker 0 only, and named 1"),
        (Client("c", Role.READER), None, None),
        (Client("c", Role.READER), 5, "to speak for broker 5 takes the role broker"),
        (Client("c", Role.ADMIN), 5, None),
    ],
    ids=str,
)
def test_require_broker_when_bound_then_only_that_broker(
    client: Client, broker_id: int | None, refusal: str | None
) -> None:
    """A client bound to a broker id may claim only that one, and another broker any."""
    if refusal is None:
        client.require_broker(broker_id)
        return
    with pytest.raises(NotPermitted, match=refusal):
        client.require_broker(broker_id)


def test_require_author_when_bound_then_writes_in_no_other_name() -> None:
    """A client bound to one broker may not write an event of another."""
    Client("c", Role.BROKER).require_author(7)
    bound = Client("c", Role.BROKER, 7)
    bound.require_author(7)
    with pytest.raises(NotPermitted, match="c writes for broker 7 only, not for 8"):
        bound.require_author(8)


def test_read_grants_when_well_written_then_by_name() -> None:
    """Grants read by name, also with an equals sign in the name."""
    texts = ("spiffe://x/a=b=broker:0", "broker-1 = broker", "ops=admin")
    assert read_grants(texts) == {
        "spiffe://x/a=b": Grant("spiffe://x/a=b", Role.BROKER, 0),
        "broker-1": Grant("broker-1", Role.BROKER),
        "ops": Grant("ops", Role.ADMIN),
    }


@pytest.mark.parametrize(
    "text",
    [
        "", "ops", "ops=", "=admin", "ops=root", "ops=Admin", "two words=admin", "n\xe4me=admin",
        "x=broker:", "x=broker:-1", "x=broker:2147483648", "x=broker:1x", "x=reader:1",
        "x=admin:1", "x" * 257 + "=admin",
    ],
)  # fmt: skip
def test_read_grants_when_it_cannot_be_meant_then_refused(text: str) -> None:
    """One line names the key, and the settings refuse it as well."""
    with pytest.raises(ConfigError, match=r"^access\.client_names must"):
        read_grants((text,))
    with pytest.raises(ConfigError, match=r"^access\.client_names must"):
        AccessSettings(client_names=(text,))


def test_read_grants_when_a_name_is_given_two_things_then_refused() -> None:
    """The file is refused when one name has two roles, and may repeat the same one."""
    assert len(read_grants(("a=reader", "a=reader"))) == 1
    with pytest.raises(ConfigError, match="got a twice"):
        read_grants(("a=reader", "a=admin"))


def test_read_grant_when_refused_then_says_nothing_of_what_may_be_a_token() -> None:
    """A line in the wrong order has a token where the role is expected."""
    with pytest.raises(ConfigError) as caught:
        read_grant("a", "hunter2hunter2hunter2", "line 1")
    assert "hunter2" not in str(caught.value)


A, B = Client("a", Role.READER), Client("b", Role.READER)
UNLIMITED = Client("u", Role.ADMIN, is_limited=False)


def test_bucket_then_lets_a_seconds_worth_pass_at_once_and_then_the_rate() -> None:
    """A burst of one second's worth, then as many as time has brought; never more than that."""
    bucket = TokenBucket(4, now_s=100.0)
    assert [bucket.take(100.0) for _ in range(6)] == [True] * 4 + [False] * 2
    assert [bucket.take(100.25) for _ in range(2)] == [True, False]
    assert [bucket.take(9_999.0) for _ in range(6)] == [True] * 4 + [False] * 2


def test_bucket_when_time_goes_back_then_gives_nothing_for_it() -> None:
    """A clock that is set back does not fill the allowance again."""
    bucket = TokenBucket(1, now_s=10.0)
    assert bucket.take(10.0)
    assert not bucket.take(5.0)
    assert not bucket.take(10.0)
    assert bucket.take(11.0)


def test_enter_when_a_client_has_enough_connections_then_only_that_one_is_refused() -> None:
    """The connections of a client are counted by name, and a closed one frees its place."""
    limits = ClientLimits(2, None, lambda: 0.0)
    limits.enter(A)
    limits.enter(A)
    with pytest.raises(TooBusy, match="a has 2 connections, as many as it may"):
        limits.enter(A)
    limits.enter(B)
    for _ in range(5):
        limits.enter(UNLIMITED)
    limits.leave(A)
    limits.enter(A)
    assert limits.figures() == {
        "a": ClientFigures(2, 1, 0), "b": ClientFigures(1, 0, 0), "u": ClientFigures(5, 0, 0),
    }  # fmt: skip


def test_meter_when_a_client_asks_too_often_then_all_its_connections_share_one_count() -> None:
    """The connections of one client share its allowance."""
    now_s = 0.0
    limits = ClientLimits(9, 3, lambda: now_s)
    first, second, other = limits.meter(A), limits.meter(A), limits.meter(B)
    assert first is not None
    assert second is not None
    assert other is not None
    first(0)
    second(0)
    first(0)
    with pytest.raises(TooBusy, match="a asks more often than 3 times a second"):
        second(0)
    other(0)
    now_s = 0.4
    second(0)
    assert limits.figures()["a"] == ClientFigures(0, 0, 1)


def test_meter_when_there_is_no_limit_then_there_is_none() -> None:
    """Without a limit the meter counts nothing."""
    assert ClientLimits(9, None, lambda: 0.0).meter(A) is None
    assert ClientLimits(9, 3, lambda: 0.0).meter(UNLIMITED) is None


def test_keep_then_forgets_who_has_no_right_and_no_connection() -> None:
    """The limits keep only names with rights or connections, however often tokens change."""
    limits = ClientLimits(9, None, lambda: 0.0)
    for client in (A, B):
        limits.enter(client)
    limits.leave(A)
    limits.keep({"c"})
    assert set(limits.figures()) == {"b"}


FILE = Path("some.pem")
SOME_TOKEN = "the-token-nobody-may-see"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"key_file": FILE}, "tls.key_file must stand beside tls.certificate_file"),
        ({"key_password": Secret("x")}, "tls.key_password must stand beside"),
        ({"key_password_file": FILE}, "tls.key_password_file must stand beside"),
        ({"client_ca_file": FILE}, "tls.client_ca_file must stand beside"),
        (
            {"client_certificates": ClientCertificates.WANTED, "certificate_file": FILE},
            "tls.client_certificates must be none without tls.client_ca_file, got wanted",
        ),
        (
            {"client_ca_file": FILE, "certificate_file": FILE},
            "tls.client_ca_file must not be set while tls.client_certificates is none",
        ),
        (
            {"key_password": Secret("x"), "key_password_file": FILE, "certificate_file": FILE},
            "tls.key_password must not be set beside tls.key_password_file",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tls_when_contradictory_then_refused(settings: dict[str, Any], refusal: str) -> None:
    """The settings refuse contradictions before a file is opened."""
    with pytest.raises(ConfigError, match=f"^{refusal}"):
        TlsSettings(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"client_connections_max": 0},
        {"client_requests_per_second_max": 0},
        {"refresh_ms": 99},
        {"refresh_ms": True},
    ],
    ids=str,
)
def test_access_when_a_number_means_nothing_then_refused(settings: dict[str, Any]) -> None:
    """The refusal of a wrong number names the key."""
    with pytest.raises(ConfigError, match=rf"^access\.{next(iter(settings))} must be a whole"):
        AccessSettings(**settings)


def test_configuration_then_has_both_sections_and_no_text_form_shows_a_secret() -> None:
    """Both sections can be set from the environment, and a printed secret is three stars."""
    loaded = load(
        environ={
            "RLMM_ACCESS_TOKENS": f"ops admin {SOME_TOKEN}",
            "RLMM_ACCESS_UNIX_ROLE": "none",
            "RLMM_ACCESS_CLIENT_NAMES": "a=reader, b=broker:3",
            "RLMM_TLS_CERTIFICATE_FILE": "some.pem",
            "RLMM_TLS_KEY_PASSWORD": SOME_TOKEN,
            "RLMM_TLS_VERSION_MIN": "1.3",
        }
    )
    access, tls = loaded.config.access, loaded.config.tls
    assert access.tokens == Secret(f"ops admin {SOME_TOKEN}")
    assert (access.unix_role, access.client_names) == ("none", ("a=reader", "b=broker:3"))
    assert (tls.certificate_file, tls.version_min) == (FILE, "1.3")
    assert SOME_TOKEN not in repr(loaded)
    shown = {found.path: repr(found.value) for found in loaded.settings if found.key.is_secret}
    assert shown["access.tokens"] == shown["tls.key_password"] == "***"


def test_configuration_when_a_cluster_says_who_may_come_in_then_refused() -> None:
    """A cluster may not have access settings, because all clusters share one door."""
    assert not {
        found.key.section for found in load().settings if found.key.is_of_cluster
    } & {"access", "tls"}  # fmt: skip


def test_meter_when_requests_are_large_then_their_bytes_count() -> None:
    """A request counts once more for each 4 KiB, and the largest for a second's allowance."""
    now_s = 0.0
    meter = ClientLimits(9, 10, lambda: now_s).meter(A)
    assert meter is not None
    meter(8 * 4_096)
    meter(0)
    with pytest.raises(TooBusy):
        meter(0)
    now_s = 1.0
    meter(4_000_000)
    with pytest.raises(TooBusy):
        meter(0)
