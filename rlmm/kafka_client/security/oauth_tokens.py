"""Tokens of OAUTHBEARER in a file that another program renews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.private_files import read_regular
from rlmm.base.threads import in_own_thread
from rlmm.errors import LogNotPermitted

if TYPE_CHECKING:
    from pathlib import Path

TOKEN_BYTES_MAX = 1 << 20


class FileTokens:
    """A `TokenProvider` that reads *path*, which its owner replaces, for each new connection."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"FileTokens({str(self._path)!r})"

    async def token(self) -> str:
        """Return the text of the file; `LogNotPermitted` when unreadable, empty or no token."""
        try:
            text = (await in_own_thread("token", self._read)).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            msg = f"the token file {self._path} cannot be read: {reason}"
            raise LogNotPermitted(msg) from error
        if not text or len(text) >= TOKEN_BYTES_MAX or text.split() != [text]:
            msg = f"the token file {self._path} must hold one token, found {len(text)} characters"
            raise LogNotPermitted(msg)
        return text

    def _read(self) -> bytes:
        return read_regular(self._path, TOKEN_BYTES_MAX)
