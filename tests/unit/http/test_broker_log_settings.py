"""The settings of brokers' log folders refuse impossible values."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.http.settings import BrokerLogSettings

FOLDER = {"broker_log_folders": "/var/kafka-logs"}
SERVERS = {"broker_log_bootstrap_servers": "broker:9092"}


@pytest.mark.parametrize(
    "name", ["stable_age_ms_max", "ask_timeout_ms", "reads_max", "read_timeout_ms"]
)
@pytest.mark.parametrize("value", [0, -1, 2**31, True])
def test_number_when_it_cannot_work_then_it_is_refused_by_name(name: str, value: int) -> None:
    """The settings refuse an impossible number by key."""
    with pytest.raises(ConfigError, match=rf"broker_log\.{name}"):
        BrokerLogSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"folders": ("kafka-logs",)}, "folders"),
        ({"folders": ("",)}, "folders"),
        ({"folders": ("/a\0b",)}, "folders"),
        ({"folders": ("/a", "/a")}, "folders"),
        ({"bootstrap_servers": ("broker",)}, "bootstrap_servers"),
        ({"command_config": "client.properties"}, "command_config"),
    ],
)
def test_setting_when_malformed_then_refused_by_name(wrong: dict[str, Any], key: str) -> None:
    """The settings refuse a relative folder and a repeated one by key."""
    with pytest.raises(ConfigError, match=rf"broker_log\.{key} must"):
        BrokerLogSettings(**wrong)


def test_folders_when_nothing_is_said_then_none_is_served() -> None:
    """By default the service serves no log folder."""
    assert load().config.broker_log.folders == ()


def test_folders_when_nobody_can_tell_what_is_stable_then_are_refused() -> None:
    """The settings refuse log folders without a cluster that knows last stable offsets."""
    with pytest.raises(ConfigError, match=r"--broker-log-folders .* broker_log\.bootstrap_servers"):
        load(FOLDER)
    assert load({**FOLDER, **SERVERS}).config.broker_log.bootstrap_servers == ("broker:9092",)
    of_log = load({**FOLDER, "kafka_bootstrap_servers": "broker:9092"}).config
    assert of_log.broker_log.bootstrap_servers == ()


def test_folders_when_there_is_no_http_then_are_refused() -> None:
    """The settings refuse log folders without HTTP."""
    with pytest.raises(ConfigError, match=r"http\.listen is none"):
        load({**FOLDER, **SERVERS, "http_listen": "none"})
