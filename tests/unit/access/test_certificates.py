"""The names read from a certificate."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest
import trustme

from rlmm.access.tls import names_of, validity_of
from rlmm.errors import ConfigError

CA = trustme.CA()


def certificate(not_before: datetime, not_after: datetime) -> str:
    """Return a PEM certificate of that lifetime."""
    made = CA.issue_cert("localhost", not_before=not_before, not_after=not_after)
    return made.cert_chain_pems[0].bytes().decode()


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (datetime(2050, 1, 1, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)),
        (datetime(1969, 1, 1, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)),
    ],
    ids=lambda moment: str(moment.year),
)
def test_validity_then_is_what_the_certificate_says(begin: datetime, end: datetime) -> None:
    """The validity is read in both forms of time, before and after 2050, amid other text."""
    found = validity_of(f"a comment\n{certificate(begin, end)}\n{CA.cert_pem.bytes().decode()}")
    assert (found.not_before_s, found.not_after_s) == (begin.timestamp(), end.timestamp())


def test_validity_when_there_is_no_certificate_then_refused() -> None:
    """A file without a certificate is refused."""
    key = CA.issue_cert("localhost").private_key_pem.bytes().decode()
    for text in ("", "nonsense", key):
        with pytest.raises(ConfigError, match="no certificate"):
            validity_of(text)


def test_validity_when_a_certificate_is_cut_anywhere_then_refused() -> None:
    """Bytes that end too early are refused, and nothing else is raised."""
    pem = certificate(datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
    der = ssl.PEM_cert_to_DER_cert(pem.strip())
    for size in range(1, len(der), 7):
        with pytest.raises(ConfigError, match="cannot be read"):
            validity_of(ssl.DER_cert_to_PEM_cert(der[:size]))
    for at in range(300):
        damaged = bytearray(der)
        damaged[at] ^= 0xFF
        try:
            validity_of(ssl.DER_cert_to_PEM_cert(bytes(damaged)))
        except ConfigError:
            continue


COMMON = (
    (("countryName", "XX"),),
    (("commonName", "broker-1"),),
    (("commonName", "localhost"),),
)


def test_names_then_are_uris_and_dns_names_in_this_order() -> None:
    """Names are URIs, then DNS names, each with its kind, without empty or endless ones."""
    said = {
        "subjectAltName": (
            ("DNS", "localhost"), ("IP Address", "10.0.0.1"), ("email", "a@b"),
            ("URI", "spiffe://here/broker/1"), ("DNS", "x" * 257), ("DNS", ""),
        ),
    }  # fmt: skip
    assert names_of(said) == ("URI:spiffe://here/broker/1", "DNS:localhost")
    assert names_of({}) == ()


@pytest.mark.parametrize("kind", ["URI", "DNS", "IP Address", "email"])
def test_names_when_there_is_an_alternative_name_then_no_common_name_counts(kind: str) -> None:
    """An authority that checks alternative names gives no right by a common name beside them."""
    found = names_of({"subject": COMMON, "subjectAltName": ((kind, "mallory.example"),)})
    assert [name for name in found if "mallory" not in name] == []


def test_names_when_there_are_several_common_names_then_the_last_one_counts() -> None:
    """Of several common names only the last one is a name."""
    assert names_of({"subject": COMMON}) == ("CN:localhost",)
