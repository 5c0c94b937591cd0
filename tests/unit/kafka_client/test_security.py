"""The files of security: read before anything connects, named when they are of no use."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from rlmm.errors import ConfigError, LogNotPermitted
from rlmm.kafka_client.security.client_options import library_options, tls_context
from rlmm.kafka_client.security.oauth_tokens import TOKEN_BYTES_MAX, FileTokens
from rlmm.kafka_client.settings import SaslMechanism, Secret, SecurityProtocol, SecuritySettings

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


def test_context_when_no_tls_then_there_is_none() -> None:
    """Without TLS the client reads no file."""
    assert tls_context(SecuritySettings(ssl_truststore_location="/nowhere")) is None


def test_context_when_a_truststore_is_named_then_only_that_is_trusted(files: Files) -> None:
    """The client accepts only certificates that the truststore signs."""
    context = tls_context(files.settings(truststore=files.trusted, keystore=files.keys))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1


def test_context_when_names_are_not_checked_then_certificates_still_are(files: Files) -> None:
    """An empty identification algorithm frees from the name, not from the signature."""
    context = tls_context(files.settings(truststore=files.trusted, identification=""))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_context_when_the_key_has_a_password_then_it_opens_it(files: Files) -> None:
    """An encrypted key is opened with the password, and never asked for at a terminal."""
    assert tls_context(files.settings(keystore=files.locked, password="open")) is not None


MISTAKES = {
    "truststore missing": ("truststore", "nowhere.pem", None, "ssl.truststore.location", "cannot"),
    "truststore a folder": ("truststore", ".", None, "ssl.truststore.location", "cannot be read"),
    "truststore garbage": (
        "truststore",
        "garbage.pem",
        None,
        "ssl.truststore.location",
        "no certificate in PEM form",
    ),
    "keystore missing": ("keystore", "nowhere.pem", None, "ssl.keystore.location", "cannot"),
    "keystore without a key": ("keystore", "ca.pem", None, "ssl.keystore.location", "no private"),
    "keystore garbage": ("keystore", "garbage.pem", None, "ssl.keystore.location", "no private"),
    "wrong password": ("keystore", "locked.pem", "shut", "ssl.keystore.location", "no private"),
    "no password": ("keystore", "locked.pem", None, "ssl.keystore.location", "ssl.key.password"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_context_when_a_file_is_of_no_use_then_key_and_file_are_named(
    files: Files, mistake: tuple[str, str, str | None, str, str]
) -> None:
    """The error names setting, file and fault in one line and shows no secret."""
    kind, name, password, key, said = mistake
    path = files.folder / name
    settings = (
        files.settings(truststore=path)
        if kind == "truststore"
        else files.settings(keystore=path, password=password)
    )
    with pytest.raises(ConfigError) as caught:
        tls_context(settings)
    text = str(caught.value)
    assert text.startswith(f"{key}: {path} ")
    assert said in text
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
    """Each connection reads the file anew and ignores a line break at its end."""
    path = tmp_path / "token"
    path.write_text("first\n")
    tokens = FileTokens(path)
    assert await tokens.token() == "first"
    path.write_text("second")
    assert await tokens.token() == "second"


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


async def test_token_when_the_file_is_not_there_then_names_it(tmp_path: Path) -> None:
    """The error names the missing file."""
    with pytest.raises(LogNotPermitted, match="absent cannot be read: No such file"):
        await FileTokens(tmp_path / "absent").token()
