"""What the service frees goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such rule")
@pytest.mark.parametrize(
    ("call", "is_given_back"), [("", False), ("assert give_back_freed_memory()", True)]
)
def test_large_pieces_when_freed_between_small_ones_then_are_given_back(
    call: str, is_given_back: bool
) -> None:
    """Without the call, glibc keeps 32 MiB that nothing uses."""
    program = PROGRAM.format(call=call)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (int(run.stdout) < 8 << 20) is is_given_back
