"""
Verify: the objects of every finished segment are checked against manifest and metadata.

Three requests for a segment tell whether its objects exist, with the lengths of their manifest and
the checksum of their writer. A deep check also reads them: the CRC of every batch, offsets against
the metadata, every index against the log. Extents need metadata alone. The job changes nothing.

Invariants:

- The job reports objects that it could not check as such, never as missing.
- A segment that is deleted meanwhile is not a finding: the job reads the metadata again first.
- Memory grows with the segments of one partition, with findings up to a limit, and a sample.

May be imported by `rlmm.cli.tier_maintenance`.

- `content_checks`: A log and its indexes, checked in one pass.
- `fault_findings`: Faults within and between segments as findings, and the lost offsets.
- `object_checks`: The objects of a segment against its manifest and its metadata.
- `report`: The report for people and programs.
- `salvage`: Segment files as a broker has them; readable offsets of a damaged log.
- `segment_choice`: The choice and order of segments, and the size of units.
- `unit_execution`: One unit on an executor: the store, the key ring, the pace.
- `values`: The settings of the checks, the values of a unit, and the faults of a segment.
- `verification`: The driver: units in waves, and the metadata once more.
"""
