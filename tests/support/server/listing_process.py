"""
`python -m tests.support.server.listing_process SOCKET` lists all segments, page by page.

It prints how many there were and how much its memory grew after the first pages.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from rlmm.state_sources.settings import SourceSettings
from rlmm.state_sources.sidecar_source import ServiceStateSource

WARM_PAGES = 5


def most_kb() -> int:
    told = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert told is not None
    return int(told[1])


async def streamed(sidecar: str) -> dict[str, int]:
    source = await ServiceStateSource.open(SourceSettings(sidecar=sidecar))
    moment = await source.now()
    segments = pages = most = before = 0
    for one in await moment.user_partitions():
        async for page in moment.segments(one.partition):
            segments, pages = segments + len(page), pages + 1
            most = max(most, len(page))
            if pages == WARM_PAGES:
                before = most_kb()
    grown = most_kb() - before
    await source.close()
    return {"segments": segments, "pages": pages, "most": most, "grown_kb": grown}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(streamed(sys.argv[1]))))
