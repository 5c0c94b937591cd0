"""
`rlmm serve` as the child of a process that has imported it already: a start takes a tenth of the
time, and a run has thousands.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.cli.main import main
from tests.support.judge.broken import FAULTS
from tests.support.server.serve_process import NO_PORTS, Serving

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator
    from multiprocessing.connection import Connection
    from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "rlmm.cli.service.serve", "rlmm.process.run"])


class ForkedProcess:
    """A child, as `asyncio.subprocess.Process` shows one."""

    def __init__(self, child: Any, stderr: asyncio.StreamReader) -> None:
        self._child = child
        self.pid: int = child.pid
        self.stderr = stderr

    @property
    def returncode(self) -> int | None:
        code: int | None = self._child.exitcode
        return code

    def send_signal(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)

    def kill(self) -> None:
        self._child.kill()

    async def wait(self) -> int | None:
        await asyncio.to_thread(self._child.join)
        return self.returncode


@asynccontextmanager
async def serving(folder: Path, *arguments: str, fault: str | None) -> AsyncIterator[Serving]:
    """Run `rlmm serve` with *fault*, if any, in *folder*; kill it at the end of the block."""
    said, saying = _CONTEXT.Pipe(duplex=False)
    child = _CONTEXT.Process(target=_serve, args=(folder, arguments, fault, saying))
    child.start()
    saying.close()
    stderr = asyncio.StreamReader()
    with said, os.fdopen(os.dup(said.fileno()), "rb") as lines:
        protocol = asyncio.StreamReaderProtocol(stderr)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, lines)
        served = Serving(ForkedProcess(child, stderr))  # type: ignore[arg-type] # of its shape
        try:
            yield served
        finally:
            child.kill()
            await served.end()


def _serve(folder: Path, arguments: tuple[str, ...], fault: str | None, saying: Connection) -> None:
    """Run in the child."""
    os.dup2(saying.fileno(), sys.stderr.fileno())
    saying.close()
    os.chdir(folder)
    for name in [name for name in os.environ if name.startswith("RLMM_")]:
        del os.environ[name]
    os.environ.update(NO_PORTS)
    sys.argv = ["rlmm", "serve", *arguments]
    if fault:
        sys.argv += ["--engine", "python"]  # it is planted there
    for owner, name, there in FAULTS[fault]() if fault else ():
        setattr(owner, name, there)
    main()
