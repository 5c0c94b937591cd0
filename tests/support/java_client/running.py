"""
How the client in Java is run: as one source file, by any JDK from 17 on.

What it prints is read here: one JSON value a line.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("Client.java")
DEADLINE_S = 60


def java() -> str | None:
    return shutil.which("java")


async def run_client(*args: str, stdin: bytes = b"") -> list[Any]:
    program = java()
    assert program is not None
    process = await asyncio.create_subprocess_exec(
        program,
        "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8",
        "-Dstdout.encoding=UTF-8",
        str(SOURCE),
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            out, err = await process.communicate(stdin)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.decode().splitlines()]
