"""A broker beside a running `rlmm serve`: `python -m examples.python_broker SOCKET`."""

from __future__ import annotations

import asyncio
import os
import sys

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from examples.python_broker.broker import Broker
from examples.python_broker.reader import Refused
from examples.python_broker.tier import Tier
from rlmm.metadata.ids import UUID_BYTES, TopicIdPartition, Uuid


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


async def main(path: str) -> None:
    """Write thirty records in three segments, tier two of them, and read from the beginning."""
    async with RemoteLogMetadataClient(UnixAddress(path), broker_id=1) as metadata:
        broker = Broker(1, metadata, Tier())
        partition = TopicIdPartition(Uuid(os.urandom(UUID_BYTES)), "example", 0)
        log = broker.become_leader(partition, 0)
        for number in range(30):
            log.append(b"record %d" % number)
            if number % 10 == 9:
                log.roll()
        await metadata.wait_ready(partition)
        say(f"tiered: {sum((await broker.tick()).values())} segments")
        log.trim(20)
        say(f"the local log begins at offset {log.start_offset}")
        offset = 0
        while offset < log.next_offset:
            records = await broker.fetch(partition, offset)
            if isinstance(records, Refused):
                say(f"offset {offset}: {records.code}")
                await asyncio.sleep(0.1)
                continue
            say(f"offset {offset}: {len(records)} records")
            offset = records[-1].offset + 1
        for segment in [segment async for segment in metadata.list_segments(partition)]:
            say(f"{segment.id}: {segment.start_offset} to {segment.last_offset}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m examples.python_broker SOCKET, such as rlmm-data/rlmm.sock")
    asyncio.run(main(sys.argv[1]))
