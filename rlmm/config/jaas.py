"""
JAAS: one login module with its options in `sasl.jaas.config`, as Java reads it. Pure.

Messages never show the value, because it contains a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
