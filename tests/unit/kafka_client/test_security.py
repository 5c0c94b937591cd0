"""The files of security: read before anything connects, named when they are of no use."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from rlmm.base.secret import Secret
from rlmm.errors import ConfigError, LogNotPermitted
from rlmm.kafka_client.security.client_options import library_options, tls_context
from rlmm.kafka_client.security.oauth_tokens import TOKEN_BYTES_MAX, FileTokens
from rlmm.kafka_client.settings import SaslMechanism, SecurityProtocol, SecuritySettings

if TYPE_CHECKING:
    from pathlib import Path


class Files:
    """An authority, and keys that it signed."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        self.folder = folder
        self.trusted = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.trusted))
        self.keys = folder / "keys.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(str(self.keys))
        key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open"))
        self.locked = folder / "locked.pem"
        self.locked.write_bytes(pem + issued.cert_chain_pems[0].bytes())
        self.garbage = folder / "garbage.pem"
        self.garbage.write_text("no certificate")

    def settings(
        self,
        *,
        truststore: Path | None = None,
        keystore: Path | None = None,
        password: str | None = None,
        identification: str = "https",
    ) -> SecuritySettings:
        return SecuritySettings(
            security_protocol=SecurityProtocol.SSL,
            ssl_truststore_location=None if truststore is None else str(truststore),
            ssl_keystore_location=None if keystore is None else str(keystore),
            ssl_key_password=None if password is None else Secret(password),
            ssl_endpoint_identification_algorithm=identification,
        )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("security"))


@pytest.mark.parametrize("identification", ["https", ""], ids=["names checked", "not checked"])
def test_context_when_names_are_not_checked_then_warns(
    files: Files, identification: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that takes a certificate of any name is warned of, and no other is."""
    tls_context(files.settings(truststore=files.trusted, identification=identification))
    warned = [line for line in caplog.messages if "endpoint.identification.algorithm" in line]
    assert len(warned) == (not identification)


@pytest.mark.parametrize("identification", ["https", ""], ids=["names checked", "not checked"])
def test_context_when_a_truststore_is_named_then_only_that_is_trusted(
    files: Files, identification: str
) -> None:
    """Only certificates that the truststore signs are accepted, with or without their names."""
    context = tls_context(
        files.settings(truststore=files.trusted, keystore=files.keys, identification=identification)
    )
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (
        ssl.CERT_REQUIRED,
        bool(identification),
    )
    assert len(context.get_ca_certs()) == 1


def test_context_when_no_tls_or_an_encrypted_key_then_reads_what_it_needs(files: Files) -> None:
    """Without TLS no file is read; an encrypted key opens with its password, without a terminal."""
    assert tls_context(SecuritySettings(ssl_truststore_location="/nowhere")) is None
    assert tls_context(files.settings(keystore=files.locked, password="open")) is not None


MISTAKES = {
    "truststore missing": ("truststore", "nowhere.pem", None, "cannot"),
    "truststore a folder": ("truststore", ".", None, "cannot be read"),
    "truststore garbage": ("truststore", "garbage.pem", None, "no certificate in PEM form"),
    "keystore missing": ("keystore", "nowhere.pem", None, "cannot"),
    "keystore without a key": ("keystore", "ca.pem", None, "no private"),
    "keystore garbage": ("keystore", "garbage.pem", None, "no private"),
    "wrong password": ("keystore", "locked.pem", "shut", "no private"),
    "no password": ("keystore", "locked.pem", None, "ssl.key.password"),
}


@pytest.mark.parametrize(("kind", "name", "password", "fault"), MISTAKES.values(), ids=MISTAKES)
def test_context_when_a_file_is_of_no_use_then_key_and_file_are_named(
    files: Files, kind: str, name: str, password: str | None, fault: str
) -> None:
    """The error names setting, file and fault in one line and shows no secret."""
    path = files.folder / name
    given: dict[str, Any] = {kind: path, "password": password}
    with pytest.raises(ConfigError) as caught:
        tls_context(files.settings(**given))
    text = str(caught.value)
    assert text.startswith(f"ssl.{kind}.location: {path} ")
    assert fault in text
    assert "shut" not in text
    assert "\n" not in text


class Provider:
    async def token(self) -> str:
        return "token"


async def test_options_when_a_provider_gives_tokens_then_the_library_gets_them() -> None:
    """The library gets its own kind of token provider, which calls ours."""
    options = library_options(
        SecuritySettings(
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            sasl_mechanism=SaslMechanism.OAUTHBEARER,
            token_provider=Provider(),
        ),
        None,
    )
    provider = options["sasl_oauth_token_provider"]
    assert await provider.token() == "token"  # type: ignore[attr-defined]
    assert "sasl_plain_password" not in options


def test_options_when_a_password_is_given_then_the_library_gets_it() -> None:
    """User, password and mechanism in the library's names."""
    options = library_options(
        SecuritySettings(
            security_protocol=SecurityProtocol.SASL_SSL,
            sasl_mechanism=SaslMechanism.SCRAM_SHA_512,
            sasl_username="me",
            sasl_password=Secret("open"),
        ),
        None,
    )
    assert options == {
        "security_protocol": "SASL_SSL",
        "ssl_context": None,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "open",
    }


async def test_token_when_the_file_is_replaced_then_is_the_new_one(tmp_path: Path) -> None:
    """Each connection reads the file anew, without its last line break; a missing one is named."""
    path = tmp_path / "token"
    tokens = FileTokens(path)
    for content in ("first\n", "second"):
        path.write_text(content)
        assert await tokens.token() == content.strip()
    path.unlink()
    with pytest.raises(LogNotPermitted, match="token cannot be read: No such file"):
        await tokens.token()


WRONG = {
    "nothing": b" \n",
    "two": b"s3cret s3cret",
    "no ASCII": "tökén".encode(),
    "no end": b"a" * TOKEN_BYTES_MAX,
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
async def test_token_when_the_file_has_none_is_refused(content: bytes, tmp_path: Path) -> None:
    """The error for a file without a token does not show the text of the file."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(LogNotPermitted, match=r"the token file .*token ") as refused:
        await FileTokens(path).token()
    assert "s3cret" not in str(refused.value)
