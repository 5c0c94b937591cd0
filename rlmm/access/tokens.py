"""
Tokens of clients. Only digests are kept.

Invariant: no error, log line or traceback reveals a token. A look-up takes the same time for every
digest.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rlmm.access.roles import read_grant
from rlmm.access.watched_files import text_of
from rlmm.base.private_files import require_private
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlmm.access.roles import Grant


TOKENS_MAX: Final = 1_000
"""Each token that is shown is compared with all of them."""
_TOKEN: Final = re.compile(r"[!-~]{16,4096}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})", re.ASCII)
_BREAKS: Final = re.compile(r"[\n;]")


class Tokens:
    __slots__ = ("_grants",)

    def __init__(self, grants: Mapping[bytes, Grant]) -> None:
        self._grants = dict(grants)

    def __len__(self) -> int:
        return len(self._grants)

    def __repr__(self) -> str:
        return f"Tokens({len(self)})"

    @property
    def names(self) -> set[str]:
        return {grant.name for grant in self._grants.values()}

    def find(self, token: str) -> tuple[bytes, Grant] | None:
        """Return the digest of a token and its grant; `None` for an unknown token."""
        shown = digest_of(token)
        found = None
        for known in self._grants:
            if hmac.compare_digest(known, shown):
                found = known
        return None if found is None else (found, self._grants[found])

    def grant_of(self, digest: bytes) -> Grant | None:
        return self._grants.get(digest)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def is_token(text: str) -> bool:
    """Return whether *text* may be a token: long enough, and fit for an HTTP header."""
    return _TOKEN.fullmatch(text) is not None


def read_tokens(text: str, where: str, breaks: re.Pattern[str] = _BREAKS) -> dict[bytes, Grant]:
    """
    Parse lines `NAME ROLE TOKEN` into grants by digest; a name may have several tokens.

    Raises `ConfigError`, which names a line by its number and shows nothing of it.
    """
    found: dict[bytes, Grant] = {}
    by_name: dict[str, Grant] = {}
    for number, line in enumerate(breaks.split(text), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        at = f"{where}, line {number}"
        if len(words) != 3:
            msg = f"{at} must be NAME ROLE TOKEN, got {len(words)} words"
            raise ConfigError(msg)
        grant = read_grant(words[0], words[1], at)
        digest = _digest_in(words[2], at)
        if by_name.setdefault(grant.name, grant) != grant:
            msg = f"{at} must give its name what another line gives it"
            raise ConfigError(msg)
        if digest in found:
            msg = f"{at} must have a token of its own, got that of another line"
            raise ConfigError(msg)
        found[digest] = grant
    if len(found) > TOKENS_MAX:
        msg = f"{where} must not have more than {TOKENS_MAX} tokens, got {len(found)}"
        raise ConfigError(msg)
    return found


def read_tokens_file(path: Path) -> dict[bytes, Grant]:
    """Read the tokens of a file; raises `ConfigError`, also if every user may read the file."""
    require_private(path, "access.tokens_file")
    return read_tokens(text_of(path, "access.tokens_file"), f"access.tokens_file {path}", _LINES)


_LINES: Final = re.compile(r"\n")


def _digest_in(text: str, at: str) -> bytes:
    digest = _DIGEST.fullmatch(text)
    if digest is not None:
        return bytes.fromhex(digest.group(1))
    if text.startswith("sha256:") or not is_token(text):
        msg = (
            f"{at} must have a token of 16 to 4096 visible ASCII characters, or sha256: and 64 "
            "hexadecimal digits"
        )
        raise ConfigError(msg)
    return digest_of(text)


_RANDOM_BYTES: Final = 32


def own_token(path: Path, key: str) -> str:
    """
    Return the token in the file that *key* names, creating the file if absent. Blocks.

    Raises `ConfigError` if the file cannot be created, or other users may read it.
    """
    try:
        if not path.exists():
            _make(path)
    except OSError as error:
        msg = f"{key} {path} cannot be written: {error.strerror or error}"
        raise ConfigError(msg) from error
    require_private(path, key)
    token = text_of(path, key).strip()
    if not is_token(token):
        msg = f"{key} {path} must hold one token and nothing else: remove it, and one is made"
        raise ConfigError(msg)
    return token


def _make(path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        beside.unlink()
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(_RANDOM_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
