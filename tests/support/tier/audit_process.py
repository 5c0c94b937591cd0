"""
An audit in a process of its own, whose memory is measured.

    python -m tests.support.tier.audit_process METADATA-FOLDER INVENTORY-FOLDER

The answer is JSON. `bytes` is the most that the process took, above the memory that one read of
the metadata takes, because every audit reads it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from rlmm.state_sources.settings import SourceSettings
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from tests.support.tier.large_tiers import NOW_MS, PLACES, PREFIX


def most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def main() -> None:
    metadata, inventory = map(Path, sys.argv[1:])
    request = CareRequest(
        source=SourceSettings(log_dirs=(metadata,), partition_count=PLACES), prefix=PREFIX
    )
    with open_tier(request, now_ms=lambda: NOW_MS) as tier:
        partitions = tier.moment().partitions()
        before, began_s = most_bytes(), time.monotonic()
        with Audit(tier, AuditOptions(inventory=str(inventory))) as audit:
            report = audit.run()
            orphans = sum(1 for _ in audit.orphans())
        seconds = time.monotonic() - began_s
    told = {
        "bytes": most_bytes() - before,
        "before": before,
        "segments": sum(one.segments for one in partitions),
        "objects": report.all.objects,
        "orphans": orphans,
        "verdict": report.overall.value,
        "findings": {kind.code: count for kind, count in report.findings.counts.items()},
        "seconds": seconds,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
