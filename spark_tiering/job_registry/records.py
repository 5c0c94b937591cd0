"""The records of a job: its plan, receipts, report, and the mark that asks it to stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rlmm.errors import InvalidArgument
from spark_tiering.copy_plan.document import DOCUMENT_BYTES_MAX
from spark_tiering.job_registry.job_store import number_of, record_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from spark_tiering.job_registry.job_store import JobStore

PLAN: Final = "plan.json"
PLANS: Final = "plans/"
REPORT: Final = "report.json"
PAUSE: Final = "pause"
RECEIPTS: Final = "receipts/"
RECEIPTS_SUFFIX: Final = ".jsonl"
BYTES_MAX: Final = DOCUMENT_BYTES_MAX


class StopMark(msgspec.Struct, frozen=True, rename="camel"):
    by: str
    at_ms: int


class JobRecords:
    """The records of one job. Only the job itself writes them, but for the mark."""

    def __init__(self, jobs: JobStore, job_id: str) -> None:
        self.job_id = job_id
        self._jobs = jobs
        self._plans = 0
        self._receipts = 0

    def write_plan(self, document: bytes) -> None:
        """Store the plan, before the first event; `InvalidArgument` where another is there."""
        self._write(PLAN, document)
        self._plans = 1

    def add_plan(self, document: bytes) -> None:
        if not self._plans:
            self.write_plan(document)
            return
        number = self._plans + 1
        self._write(f"{PLANS}{number:08d}.json", document)
        self._plans = number

    def plan(self) -> bytes | None:
        """Return the document of the first; `None` where there is none (yet)."""
        return self._jobs.read(self._jobs.job_key(self.job_id, PLAN), BYTES_MAX)

    def plans(self) -> Iterator[bytes]:
        first = self.plan()
        if first is None:
            return
        yield first
        folder = self._jobs.job_key(self.job_id, PLANS)
        numbered = (number_of(one.key, folder, ".json") for one in self._jobs.list(folder))
        for number in sorted(number for number in numbered if number is not None):
            key = f"{folder}{number:08d}.json"
            yield self._jobs.read(key, BYTES_MAX) or b""

    def add_receipts(self, receipts: Iterable[msgspec.Struct]) -> None:
        """Keep *receipts* as one more object, a line each; nothing where there is none."""
        content = b"".join(map(record_bytes, receipts))
        if not content:
            return
        number = self._receipts + 1
        self._write(f"{RECEIPTS}{number:08d}{RECEIPTS_SUFFIX}", content)
        self._receipts = number

    def write_report(self, document: Mapping[str, Any]) -> None:
        text = json.dumps(dict(document), ensure_ascii=False, indent=1)
        self._write(REPORT, f"{text}\n".encode())

    @property
    def pause_key(self) -> str:
        return self._jobs.job_key(self.job_id, PAUSE)

    def ask_to_stop(self, by: str) -> None:
        """Ask the job to stop between segments; *by* names the operator."""
        # Another operator's mark is as good.
        self._jobs.write_once(self.pause_key, record_bytes(StopMark(by, self._jobs.now_ms())))

    def is_asked_to_stop(self) -> bool:
        return self._jobs.is_there(self.pause_key)

    def _write(self, name: str, content: bytes) -> None:
        key = self._jobs.job_key(self.job_id, name)
        if len(content) > BYTES_MAX:
            msg = f"{key}: {len(content)} bytes, at most {BYTES_MAX}"
            raise InvalidArgument(msg)
        if not self._jobs.write_once(key, content):
            msg = f"{key} is there already, and it is another one"
            raise InvalidArgument(msg)
