"""The section `sidecar`: its refusals and its values."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.sidecar.settings import SidecarSettings


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connections_max", 0),
        ("frame_bytes_max", 1_000),
        ("frame_bytes_max", 2**30),
        ("waiting_max", -1),
        ("idle_timeout_ms", 0),
        ("clusters_max", 0),
        ("lookups_max", 10_001),
        ("page_max", 1_001),
        ("page_max", True),
        ("assign_max", 0),
        ("assign_max", 10_001),
        ("timeout_ms_max", 0),
        ("waiting_bytes_max", 0),
        ("waiting_bytes_total_max", -1),
        ("greeting_bytes_max", 0),
        ("unix_mode", "999"),
        ("unix_mode", "rw"),
        ("unix_path", " "),
        ("listen", "9092"),
        ("listen", "host:"),
        ("listen", ":9092"),
        ("listen", "host:99999"),
        ("listen", "::1:80"),
    ],
)
def test_f97_settings_when_unusable_then_refused_by_their_key(key: str, value: Any) -> None:
    """Failure scenario F97: the settings refuse each wrong value by key before any I/O."""
    with pytest.raises(ConfigError, match=rf"sidecar\.{key} must be"):
        SidecarSettings(**{key: value})


def test_ready_timeout_when_above_what_may_be_asked_for_then_refused() -> None:
    """The service's own wait for readiness must not exceed the longest one of a client."""
    with pytest.raises(ConfigError, match=r"sidecar\.ready_timeout_ms must not be above"):
        SidecarSettings(ready_timeout_ms=9, timeout_ms_max=8)


def test_settings_when_sound_then_give_mode_and_address() -> None:
    """The mode is octal, and a host of colons stands in brackets."""
    settings = SidecarSettings(unix_mode="660", listen="[::1]:0", clusters_max=3)
    assert settings.mode == 0o660
    assert settings.address == ("::1", 0)
    assert SidecarSettings().address is None


def test_kafka_log_when_no_servers_are_set_then_clusters_must_be_learned() -> None:
    """Without servers the configuration must set how many clusters brokers may name."""
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers must be set"):
        load({"log_kind": "kafka"})
    config = load({"log_kind": "kafka", "sidecar_clusters_max": "1"}).config
    assert config.kafka is not None
    assert config.kafka.bootstrap_servers == ()
    with pytest.raises(ConfigError, match="sidecar"):
        load({"sidecar_clusters_max": "1"})
