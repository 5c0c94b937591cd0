"""Roles and grants."""

import pytest

from rlmm.access.roles import Client, Grant, Role, read_grant, read_grants
from rlmm.access.settings import AccessSettings
from rlmm.errors import ConfigError, NotPermitted
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
