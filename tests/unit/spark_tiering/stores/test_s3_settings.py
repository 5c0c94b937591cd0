"""Settings of a bucket, and early refusals."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import botocore.session
import pytest

from rlmm.errors import ConfigError
from spark_tiering.stores.s3_settings import (
    CREDENTIAL_CHAIN,
    MIB,
    BodySigning,
    BucketEncryption,
    S3Settings,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bucket": ""},
        {"bucket": "a/b"},
        {"endpoint": "somewhere:9000"},
        {"endpoint": "ftp://somewhere"},
        {"endpoint": "https://name:secret@somewhere"},
        {"kms_key_id": "key"},
        {"storage_class": "GLACIER"},
        {"storage_class": "standard"},
        {"single_put_bytes": 6 * 1024 * MIB},
        {"part_bytes": MIB},
        {"read_timeout_ms": 0},
    ],
    ids=lambda wrong: "-".join(map(str, wrong.items())),
)
def test_settings_that_cannot_be_meant_when_made_are_refused(wrong: dict[str, Any]) -> None:
    """Impossible settings are refused before a client exists, without repeating a secret."""
    with pytest.raises(ConfigError) as caught:
        S3Settings(**({"bucket": "objects"} | wrong))
    assert "secret" not in str(caught.value)


def test_settings_when_shown_or_sent_hold_no_credential() -> None:
    """The settings have no field for a credential, since they are shown and sent to workers."""
    settings = S3Settings("objects", encryption=BucketEncryption.KMS, kms_key_id="alias/tier")
    assert pickle.loads(pickle.dumps(settings)) == settings
    names = {field.name for field in dataclasses.fields(S3Settings)}
    assert not {name for name in names if "secret" in name or "token" in name or "access" in name}


@pytest.mark.parametrize(
    ("signing", "endpoint", "is_signed"),
    [
        (BodySigning.AUTO, "https://s3.eu-central-1.amazonaws.com", False),
        (BodySigning.AUTO, "http://127.0.0.1:9000", False),
        (BodySigning.AUTO, "http://store.example:9000", True),
        (BodySigning.ALWAYS, "https://store.example", True),
        (BodySigning.NEVER, "http://store.example", False),
    ],
)
def test_unprotected_body_is_signed(signing: BodySigning, endpoint: str, is_signed: bool) -> None:
    """A body is signed on a plain network, while TLS or the same machine need only the checksum."""
    assert S3Settings("objects", signing=signing).is_body_signed(endpoint) is is_signed


def test_f127_credential_chain_when_documented_is_the_one_that_is_walked() -> None:
    """The documented credential chain is the library's, in its order."""
    resolver = botocore.session.Session().get_component("credential_provider")
    assert tuple(provider.METHOD for provider in resolver.providers) == CREDENTIAL_CHAIN
