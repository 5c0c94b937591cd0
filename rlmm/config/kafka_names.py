"""
Kafka's names of settings, and the keys of rlmm that they set. Pure.

A security property that cannot be applied is refused with an alternative. Messages show no values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlmm.config.key_table import KEYS, name_of
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class KafkaSetting:
    """A value as the user gave it: the spelling of its key, and its source."""

    value: object = field(repr=False)
    written: str
    source: str

    def __str__(self) -> str:
        return f"{self.written} ({self.source})"


_TOPIC = "remote.log.metadata.topic."
_STORES = ("ssl.truststore", "ssl.keystore")
_STORE_TYPES = {"PEM", "PKCS12", "JKS"}
"""What is read; which of them a file is, it says itself."""
_LOGIN_CALLBACK = "OAuthBearerLoginCallbackHandler"
_PROVIDER = re.compile(r"\$\{\w[\w.-]*:[^}]*\}")
_ONE_FILE = "write key and certificates into one PEM file and name it in ssl.keystore.location"
_REFUSED = {
    "ssl.truststore.certificates": (
        "write the certificates into a PEM file and name it in ssl.truststore.location"
    ),
    "ssl.keystore.certificate.chain": _ONE_FILE,
    "ssl.keystore.key": _ONE_FILE,
    "ssl.certificate.location": _ONE_FILE,
    "ssl.key.location": _ONE_FILE,
    "sasl.client.callback.handler.class": "a class of Java cannot be loaded here",
    "sasl.login.class": "a class of Java cannot be loaded here",
}
"""What would change who is trusted, and what to do in its place."""

_SPECIAL = {
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    *(f"{store}.type" for store in _STORES),
    *_REFUSED,
}
_RENAMED = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "metadata.broker.list": "bootstrap.servers",
    **{
        f"{_TOPIC}{name}": f"topic.{name}"
        for name in ("num.partitions", "replication.factor", "retention.ms", "min.isr")
    },
}
"""Other clients' spellings of what we have, and the topic's keys under Kafka's whole names."""
_ELSEWHERE = {"remote.log.metadata.consume.wait.ms": "write_timeout_ms"}
_FILES = {"command.config", "server.properties"}
"""Keys that name such files, and so mean nothing within one."""

CLIENT_ALIASES = {name_of(key): key for key in (*_SPECIAL, *_RENAMED, *_ELSEWHERE)}
"""What may be written in place of a key of the section `kafka`, by name."""


def is_client_key(key: str) -> bool:
    return key in _SPECIAL or (key not in _FILES and _name(key) in KEYS)


def _name(key: str) -> str:
    return _ELSEWHERE.get(key) or name_of(f"kafka.{_RENAMED.get(key, key)}")


def client_values(given: Mapping[str, KafkaSetting]) -> tuple[dict[str, KafkaSetting], list[str]]:
    """
    Return a Java client's properties by our names, and those without an equivalent.

    Raises `ConfigError` for a property that can neither be applied nor ignored.
    """
    values: dict[str, KafkaSetting] = {}
    unused = []
    for key, found in given.items():
        if key in _SPECIAL:
            continue
        if not is_client_key(key):
            unused.append(found.written)
            continue
        _require_literal(found)
        name = _name(key)
        if name not in values or key not in _RENAMED:
            values[name] = found
    for key in _REFUSED.keys() & given.keys():
        msg = f"{given[key]} has no equivalent: {_REFUSED[key]}"
        raise ConfigError(msg)
    for store in _STORES:
        _require_known(store, given)
    callback = given.get("sasl.login.callback.handler.class")
    if callback is not None and not str(callback.value).endswith(_LOGIN_CALLBACK):
        msg = f"{callback} has no equivalent: a class of Java cannot be loaded here"
        raise ConfigError(msg)
    if "sasl.jaas.config" in given:
        login, unused_options = _login(given["sasl.jaas.config"])
        values = {**login, **values}
        unused += unused_options
    return values, unused


def _require_literal(given: KafkaSetting) -> None:
    if isinstance(given.value, str) and _PROVIDER.search(given.value):
        msg = (
            f"{given} refers to a config provider, which is a class of Java: write the value "
            "itself, or give it by environment variable"
        )
        raise ConfigError(msg)


def _require_known(store: str, given: Mapping[str, KafkaSetting]) -> None:
    said = given.get(f"{store}.type")
    if said is not None and str(said.value).upper() not in _STORE_TYPES:
        msg = (
            f"{said} must be PEM, PKCS12 or JKS, got {said.value!r}: keytool -importkeystore "
            "-srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12 makes one of it"
        )
        raise ConfigError(msg)


def _login(given: KafkaSetting) -> tuple[dict[str, KafkaSetting], list[str]]:
    """Return user and password of the login module, and the options that are not used."""
    _require_literal(given)
    try:
        login = parse_login(str(given.value))
    except ConfigError as error:
        msg = f"{given} cannot be read: {error}"
        raise ConfigError(msg) from error
    options = dict(login.options)
    taken = {}
    if login.module in {"PlainLoginModule", "ScramLoginModule"}:
        for option in ("username", "password"):
            if option in options:
                taken[f"kafka_sasl_{option}"] = replace(given, value=options.pop(option))
    elif login.module != "OAuthBearerLoginModule":
        msg = (
            f"{given} names {login.module}: only PlainLoginModule, ScramLoginModule and "
            "OAuthBearerLoginModule have an equivalent"
        )
        raise ConfigError(msg)
    return taken, [f"{given.written} {option}" for option in options]


_TOKEN = re.compile(
    r"""(?P<skipped>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>[\w.$-]+)
    |"(?P<double>(?:\\.|[^"\\\n])*)"
    |'(?P<single>(?:\\.|[^'\\\n])*)'
    |(?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = {"required", "requisite", "sufficient", "optional"}


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """The last part of the module's name, and its options."""

    module: str
    options: dict[str, str] = field(repr=False)


def parse_login(text: str) -> JaasLogin:
    """Parse `Module required key="value" ...;`; raises `ConfigError` for more than one module."""
    tokens = list(_tokens(text))
    if len(tokens) < 3 or not all(tokens[0]) or tokens[1][0].lower() not in _FLAGS:
        msg = "it must begin with a login module and 'required'"
        raise ConfigError(msg)
    if tokens[-1] != (";", False):
        msg = "it must end with ';'"
        raise ConfigError(msg)
    module, rest = tokens[0][0], tokens[2:-1]
    if (";", False) in rest:
        msg = "it must name one login module only"
        raise ConfigError(msg)
    options = {}
    for at in range(0, len(rest), 3):
        key, *assigned = rest[at : at + 3]
        if len(assigned) != 2 or assigned[0] != ("=", False) or not (key[1] and assigned[1][1]):
            msg = f'option {at // 3 + 1} of its login module must be key="value"'
            raise ConfigError(msg)
        options[key[0]] = assigned[1][0]
    return JaasLogin(module.rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            msg = f"it cannot be read from character {at + 1} on: a quote that is not closed?"
            raise ConfigError(msg)
        kind = match.lastgroup
        if kind in {"double", "single"}:
            yield _ESCAPE.sub(_character, match.group(kind)), True
        elif kind != "skipped":
            yield match.group(), kind == "word"
        at = match.end()


def _character(match: re.Match[str]) -> str:
    octal, letter = match.groups()
    return chr(int(octal, 8)) if octal else _LETTERS.get(letter, letter)
