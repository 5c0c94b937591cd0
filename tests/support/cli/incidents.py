"""Incidents of operation, and the commands that show them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.state_sources.brokers import Brokers
from tests.support.builders import finished, segment_id, started, tp
from tests.support.cli.shared_history import START_MS, WrittenEvents, write_records
from tests.support.cli.state_commands import Told, called, told

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from tests.support.kafka.fake_cluster import FakeCluster

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operating.md"
ORDERS = tp("orders", 3)
NOW_MS = START_MS + 26 * 3_600_000


@dataclass(kw_only=True)
class Incident(WrittenEvents):
    folder: Path
    log_starts: Mapping[int, int] | None = None
    cluster: list[str] = field(default_factory=list)

    def begin(
        self, label: str, start: int, last: int, *, of: TopicIdPartition = ORDERS,
        broker_id: int = 1, epoch: int = 0,
    ) -> SegmentId:  # fmt: skip
        one = segment_id(label, of)
        self.put(
            started(
                one, start, last, {epoch: start}, broker_id=broker_id, size_bytes=1_048_576,
                event_timestamp_ms=self.now_ms, max_timestamp_ms=self.now_ms,
            )
        )  # fmt: skip
        return one

    def end(self, one: SegmentId, *, broker_id: int = 1) -> None:
        self.put(finished(one, broker_id=broker_id, event_timestamp_ms=self.now_ms))

    def copy(
        self, label: str, start: int, last: int, *, of: TopicIdPartition = ORDERS,
        broker_id: int = 1, epoch: int = 0,
    ) -> SegmentId:  # fmt: skip
        one = self.begin(label, start, last, of=of, broker_id=broker_id, epoch=epoch)
        self.end(one, broker_id=broker_id)
        return one

    # ------------------------------------------------------------------------------ looking

    def beside(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        async def opened(kafka: KafkaSettings, timeout_s: float) -> FakeCluster:
            assert kafka.bootstrap_servers == ("kafka:9092",)
            assert timeout_s > 0
            return cluster

        monkeypatch.setattr(Brokers, "open", opened)
        self.cluster = ["--bootstrap-server", "kafka:9092"]

    def _flags(self) -> list[str]:
        if not self.folder.exists():
            asyncio.run(
                write_records(self.folder, self.records, self.partition_count, self.log_starts)
            )
        return ["--log-dirs", str(self.folder), *self.cluster]

    def ask(self, *arguments: str) -> Told:
        return told(*arguments, *self._flags())

    def document(self, *arguments: str) -> Mapping[str, Any]:
        answer = self.ask(*arguments)
        assert answer.document is not None, answer
        return answer.document

    def findings(self, *arguments: str) -> dict[str, dict[str, Any]]:
        items = self.document(*arguments)["items"]
        found = {item["code"]: item for item in items}
        assert len(found) == len(items), "one of each"
        return found

    def shows_what_the_page_says(self, title: str) -> None:
        command, quoted = quoted_on_page(title)
        shown = called(*command, *self._flags(), output="table").stdout
        missing = [line for line in quoted if line not in (*shown.splitlines(), "...")]
        assert not missing, f"{missing} is not in\n{shown}"
        assert len(quoted) >= 2, "a person sees something"


def quoted_on_page(title: str) -> tuple[list[str], list[str]]:
    """Return the command of a section of the page, and the output lines that the page quotes."""
    _, _, behind = PAGE.read_text(encoding="utf-8").partition(f"\n### {title}\n")
    section = behind.partition("\n#")[0]
    (block,) = re.findall(r"```text\n\$ rlmm (.*?)```", section, re.DOTALL)
    first, *lines = block.splitlines()
    return first.split(), [line for line in lines if line]
