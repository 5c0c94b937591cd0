"""Outages of a broker that runs on rlmm, while records are written, copied and read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from rlmm.metadata.ids import Uuid
from spark_tiering.layout.object_names import ObjectKind
from tests.kafka.clients import until
from tests.kafka.process import ProcessFailed
from tests.support.plugin.outage_costs import COMPLAINT, Account, Lived
from tests.support.plugin.outage_plans import Moment, Outage
from tests.support.plugin.segment_copies import Copies
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from tests.kafka.plugin_kafka import PluginKafka
    from tests.support.plugin.outage_plans import Step
    from tests.support.plugin.traffic import Clients

DEADLINE_S = 90.0
PROMPT_S = 20.0
"""In which a broker that is asked to stop has stopped, whatever its service does."""
WRITTEN_A_STEP = 120
LEADING_MS = 10_000
"""A broker that says that it is started is made the leader before that; told a moment later."""


async def answer_of(*command: str) -> Any:
    run = [sys.executable, "-m", "rlmm", *command, "--output", "json"]
    process = await asyncio.create_subprocess_exec(
        *run, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tree.ROOT
    )
    out, lines = await process.communicate()
    assert process.returncode in {0, 1}, lines.decode()
    return json.loads(out)


def segment_of(path: Path) -> Uuid:
    """Return the id in an object's name: 20 digits, a dash, the id, a suffix."""
    return Uuid.parse(path.stem[21:])


class Story:
    def __init__(self, kafka: PluginKafka, clients: Clients) -> None:
        self.kafka = kafka
        self.clients = clients
        self.topic = clients.ledger.topic
        self.account = Account()

    def copies(self) -> Copies:
        return Copies(self.kafka.metadata_events(self.topic))

    def _count(self, moment: Moment) -> int:
        match moment:
            case Moment.COPY_BEGUN:
                return len(self.copies().begun)
            case Moment.OBJECT_WRITTEN:
                return len(self.kafka.objects(self.topic))
            case Moment.COPY_FINISHED:
                return len(self.copies().finished)
            case Moment.RECORD_READ:
                return self.clients.read
            case Moment.RECORD_WRITTEN:
                return self.clients.writing.count
            case Moment.ANSWER_OWED:
                return 0

    def _has_come(self, step: Step) -> Callable[[], bool]:
        if step.moment is Moment.ANSWER_OWED:
            return self._is_owing
        wanted = self._count(step.moment) + step.after
        return lambda: self._count(step.moment) >= wanted

    def _is_owing(self) -> bool:
        """Pause the service in the middle of a copy; return whether that worked."""
        if self.clients.writing.is_idle:
            self.clients.writing.allow(WRITTEN_A_STEP)
        if not self.copies().open:
            return False
        os.kill(self.kafka.sidecar.pid, signal.SIGSTOP)
        if self.copies().open:
            return True
        self._go_on()
        return False

    def _go_on(self) -> None:
        os.kill(self.kafka.sidecar.pid, signal.SIGCONT)

    async def _event_sent(self) -> None:
        """Wait until the broker has sent STARTED, or else FINISHED, that the service misses."""
        begun = self.copies().open

        def is_written() -> bool:
            has = self.kafka.objects(self.topic, ObjectKind.MANIFEST)
            return begun <= {segment_of(path) for path in has}

        with contextlib.suppress(ProcessFailed):
            await until(is_written, "the last object was written", deadline_s=1.0)
        await self.clients.writing.write(1)  # meanwhile the broker has gone on to the next thing

    async def until(self, fact: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self.clients.require_alive()
            return fact()

        await until(holds, what, deadline_s=DEADLINE_S)

    async def carry_out(self, steps: Sequence[Step]) -> Account:
        unsettled: list[Step] = []
        position, begun_s = self.kafka.node.log.position, time.monotonic()
        for step in steps:
            has_come = self._has_come(step)
            self.clients.writing.allow(WRITTEN_A_STEP)
            await self.until(has_come, f"{step} began")
            if not unsettled:
                position, begun_s = self.kafka.node.log.position, time.monotonic()
            unsettled.append(step)
            await self._end(step)
            await self._start(step)
            if step.is_waited_for:
                await self.settled()
                self.account.lived.append(self._lived(unsettled, position, begun_s))
                unsettled = []
        return self.account

    async def _end(self, step: Step) -> None:
        sidecar = self.kafka.sidecar
        if step.moment is Moment.ANSWER_OWED:
            await self._event_sent()
            if step.outage is Outage.SIDECAR_STOPPED:
                self._go_on()
        if step.outage.ends_sidecar:
            # In threads: whoever writes and reads goes on.
            how = sidecar.stop if step.outage is Outage.SIDECAR_STOPPED else sidecar.kill
            await asyncio.to_thread(how)
        if step.outage.ends_broker:
            await self.end_broker(is_killed=step.outage is not Outage.BROKER_STOPPED)
            if step.moment is Moment.ANSWER_OWED and not step.outage.ends_sidecar:
                self._go_on()
        elif step.missed:
            await self.clients.writing.write(step.missed)
        if step.outage is Outage.SIDECAR_EMPTIED:
            shutil.rmtree(sidecar.folder / "rlmm-data")

    async def end_broker(self, *, is_killed: bool = False) -> int | None:
        node = self.kafka.node
        self.clients.broker.clear()
        how = signal.SIGKILL if is_killed else signal.SIGTERM
        status = await asyncio.to_thread(node.end, how, PROMPT_S)
        self.account.cut |= self.copies().open
        return status

    async def _start(self, step: Step) -> None:
        starting: list[Awaitable[object]] = []
        if step.outage.ends_sidecar:
            starting.append(asyncio.to_thread(self.kafka.sidecar.start))
        if step.outage.ends_broker:
            starting.append(self.start_broker())
        await asyncio.gather(*starting)

    async def start_broker(self) -> None:
        begun_ms = 1_000 * time.time()
        await asyncio.to_thread(self.kafka.node.start)
        self.clients.broker.set()
        self.account.starts.append((begun_ms, 1_000 * time.time() + LEADING_MS))

    async def settled(self) -> None:
        writing = self.clients.writing
        await writing.write(1)
        await self.clients.all_read()
        await writing.finished()
        last = max(one.offset for one in self.clients.ledger.entries)
        await self.until(lambda: self.copies().end(0) > last, f"all to {last} was copied")
        await self.until(
            lambda: len(self.kafka.local_segments(self.topic)) == 1, "what was copied was trimmed"
        )

    def wrong(self) -> list[str]:
        """Return the faults once all is settled: unread records, second copies, foreign objects."""
        copies = self.copies()
        left = self.account.while_starting(copies) - self.account.cut
        excused = self.account.cut | left
        wrong = self.clients.wrong_passes() + self.account.too_much()
        if repeated := copies.repeated(besides=excused):
            wrong.append(f"begun more than once: {repeated}")
        if strange := copies.open - excused:
            wrong.append(f"begun, never finished, and not cut by the broker's own end: {strange}")
        for kind in ObjectKind:
            has = {segment_of(path) for path in self.kafka.objects(self.topic, kind)}
            if missing := copies.finished - has:
                wrong.append(f"copied, without {kind} in the tier: {missing}")
            if orphans := has - copies.finished - self.account.cut:
                wrong.append(f"a {kind} in the tier of no copy that was finished: {orphans}")
        return wrong

    async def steady(self) -> list[str]:
        """Return the broker's complaints in steady work; one late answer is allowed."""
        complaints: list[str] = []
        for _ in range(3):
            position = self.kafka.node.log.position
            await self.clients.writing.write(WRITTEN_A_STEP)
            await self.settled()
            lines = self.kafka.node.log.since(position)
            complaints = [line for line in lines if COMPLAINT.search(line)]
            if not complaints:
                break
        return complaints

    async def listed_as_open(self) -> tuple[set[Uuid], set[Uuid]]:
        # A service beside a broker reads the metadata partitions that this broker needs, no others.
        where = ("--bootstrap-server", self.kafka.bootstrap, "--topic", self.topic)
        begun = await answer_of("segments", "list", *where, "--state", "copy_segment_started")
        stuck = await answer_of("stuck", *where, "--copy-older-than", "1ms")
        return (
            {Uuid.parse(one["segment_id"]) for one in begun["items"]},
            {Uuid.parse(one["fields"]["segment_id"]) for one in stuck["items"]},
        )

    def _lived(self, steps: list[Step], position: int, begun_s: float) -> Lived:
        lines = self.kafka.node.log.since(position)
        return Lived(
            steps,
            time.monotonic() - begun_s,
            [line for line in lines if " ERROR " in line],
            [line for line in lines if " WARN " in line],
        )
