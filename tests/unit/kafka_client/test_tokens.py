"""Tokens of OAUTHBEARER from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogNotPermitted
from rlmm.kafka_client.security.oauth_tokens import TOKEN_BYTES_MAX, FileTokens

if TYPE_CHECKING:
    from pathlib import Path


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
