"""What the service frees goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import TYPE_CHECKING

from click.testing import CliRunner

from rlmm.cli.service import serve

if TYPE_CHECKING:
    import pytest

PROGRAM = """
import os
from pathlib import Path
from rlmm.base.freed_memory import give_back_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")

{call}
bytearray(16 << 20)  # its size is glibc's new limit, once it is freed
before = resident()
large, small = [], []
for _ in range(32):
    large.append(bytearray(b"x") * (1 << 20))
    small.append(bytes(100_000))
large.clear()
print(resident() - before)
"""


def test_large_pieces_when_freed_between_small_ones_then_are_given_back() -> None:
    """glibc would keep 32 MiB that nothing uses; other C libraries are left as they are."""
    is_glibc = platform.libc_ver()[0] == "glibc"
    program = PROGRAM.format(call=f"assert give_back_freed_memory() is {is_glibc}")
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not is_glibc or int(run.stdout) < 8 << 20


def test_serve_then_gives_freed_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service asks for it before it reads its configuration."""
    asked: list[bool] = []
    monkeypatch.setattr(serve, "give_back_freed_memory", lambda: asked.append(True))
    assert CliRunner().invoke(serve.serve_command, ["--config", "/nowhere.toml"]).exit_code == 2
    assert asked == [True]
