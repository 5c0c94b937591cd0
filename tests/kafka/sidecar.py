"""An rlmm service beside a broker, which a test kills, stops and starts as often as it likes."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.kafka.process import ChildProcess, KeptProcess, ProcessLog
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.engine.chosen import environ_without_settings
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTENING = "listening at "
ANSWERING = "is answered from"
START_DEADLINE_S = 60.0
CLEAN_STATUS = 0


class Sidecar(KeptProcess):
    """`rlmm serve` on a cluster's metadata topic; its data folder stays over restarts."""

    def __init__(
        self, folder: Path, bootstrap: str, *, replicas: int = 1, arguments: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.replicas = replicas
        self.arguments = list(arguments)
        folder.mkdir(parents=True)
        # The path of a socket has less than 108 characters, wherever tests keep their files.
        self._short = Path(tempfile.mkdtemp(prefix="rlmm-"))
        self.socket = self._short / "s"
        super().__init__(ProcessLog(folder / "sidecar.log"))

    @property
    def address(self) -> str:
        return str(self.socket)

    def start(self) -> Self:
        assert not self.is_running, "is running already"
        self.end(signal.SIGKILL)
        environ = environ_without_settings()
        position = self.log.position
        command = [
            sys.executable, "-m", "tests.support.server.child_rlmm", "serve",
            "--bootstrap-server", self.bootstrap, "--mode", "serve", "--assignment", "broker",
            "--data-dir", str(self.folder / "rlmm-data"),
            "--sidecar-unix-path", str(self.socket), "--http-listen", "none",
            "--kafka-topic-is-created", "true",
            "--kafka-topic-num-partitions", str(METADATA_PARTITIONS),
            "--kafka-topic-replication-factor", str(self.replicas),
            "--kafka-topic-min-isr", str(min(2, self.replicas)),
            *self.arguments,
        ]  # fmt: skip
        self._process = ChildProcess(
            command, self.folder, self.log, environ={**environ, "PYTHONPATH": str(tree.ROOT)}
        )
        self.log.wait_for(LISTENING, position=position, deadline_s=START_DEADLINE_S)
        return self

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._short, ignore_errors=True)
