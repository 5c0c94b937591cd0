"""The settings of access and TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlmm.access.settings import AccessSettings, ClientCertificates, TlsSettings
from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import Secret

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
