"""An S3 server in this process: a `Trouble` befalls the next requests of one operation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.support.stores.s3_stub_requests import Connection, StubServer

if TYPE_CHECKING:
    from tests.support.stores.s3_stub_requests import Asked, Begun, Kept, Trouble


class ObjectStub:
    def __init__(self) -> None:
        self.objects: dict[str, Kept] = {}
        self.uploads: dict[str, Begun] = {}
        self.asked: list[Asked] = []
        self.ignores_conditions = False
        self.ignores_sums = False
        self.tells_sums = True
        self.takes_ranges = True
        self.lock = threading.RLock()
        self._troubles: list[tuple[str, Trouble]] = []
        self._server = StubServer(("127.0.0.1", 0), Connection)
        self._server.stub = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.is_closing = threading.Event()

    def __enter__(self) -> ObjectStub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def befall(self, operation: str, *troubles: Trouble) -> None:
        """Let *troubles* happen to the next requests of *operation*, one each."""
        self._troubles += [(operation, trouble) for trouble in troubles]

    def trouble_of(self, operation: str) -> Trouble | None:
        with self.lock:
            for place, (befallen, trouble) in enumerate(self._troubles):
                if befallen == operation:
                    del self._troubles[place]
                    return trouble
        return None

    def operations(self) -> list[str]:
        return [asked.operation for asked in self.asked]
