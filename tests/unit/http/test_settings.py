"""The settings of HTTP refuse impossible values."""

import pytest

from rlmm.errors import ConfigError
from rlmm.http.settings import HttpSettings, LocalRole


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:7405", ("127.0.0.1", 7405)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:1", ("localhost", 1)),
        ("none", None),
    ],
)
def test_listen_when_an_address_then_is_split(listen: str, address: tuple[str, int] | None) -> None:
    """The address is host and port, or none."""
    assert HttpSettings(listen=listen).address == address


@pytest.mark.parametrize("listen", ["", "7405", ":7405", "::1:80", "h:70000", "h:x", "h:"])
def test_listen_when_it_is_no_address_then_it_is_refused(listen: str) -> None:
    """The error names the key."""
    with pytest.raises(ConfigError, match=r"http\.listen"):
        HttpSettings(listen=listen)


@pytest.mark.parametrize(
    "name",
    [
        "connections_max", "head_timeout_ms", "idle_timeout_ms", "body_timeout_ms",
        "slow_client_ms",
        "wait_timeout_ms_max", "client_max_size", "lookups_max", "heartbeat_age_ms_max",
        "stop_timeout_ms",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [0, -1, 2**31, True])
def test_number_when_it_cannot_work_then_it_is_refused_by_name(name: str, value: int) -> None:
    """The settings refuse an impossible number by key."""
    with pytest.raises(ConfigError, match=rf"http\.{name}"):
        HttpSettings(**{name: value})  # type: ignore[arg-type]


def test_questions_when_nothing_is_said_then_are_closed_and_health_and_metrics_open() -> None:
    """By default questions are closed, and health and metrics are open and show no segment."""
    settings = HttpSettings()
    assert settings.local_role is LocalRole.NONE
    assert (settings.health_open, settings.metrics_open) == (True, True)
