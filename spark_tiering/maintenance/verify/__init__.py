"""
Whether every finished segment has its objects, and whether they are what they should be.

    with open_tier(request) as tier:
        report = verify_tier(tier, VerifyOptions(is_deep=True))
        report.is_fine, report.findings

Three requests for a segment tell whether its objects are there, as long as their manifest says,
with the checksum that their writer noted. A deep look also reads them: every batch's CRC, offsets
against the metadata, every index against the log. What lies between segments is judged by metadata
alone. Nothing is changed.

By module, bottom up:

    settings        what is looked at, how closely, at what pace
    values          what a unit is told and tells; what is wrong with one segment
    object_checks   a segment's objects against its manifest and its metadata
    segment_files   a tiered segment as the files of a broker, for the judges of such
    salvage         which offsets of a log with damage in it can still be read
    content_checks  a log and its indexes, judged while they pass by
    unit_execution  one unit on an executor: the store, the key ring, the pace
    extents         segments side by side: gaps, overlaps, epochs
    segment_choice  which segments, in which order, in units of which size
    fault_findings  faults as findings, and which offsets are lost with them
    report          the outcome for people and programs
    verification    the driver: units in waves, and the metadata once more before anything is told

Invariants:

- What could not be looked at is told as that, and never as missing.
- A segment that was deleted meanwhile is not a finding: metadata is read anew before it is told.
- Memory grows with the segments of one partition, with findings up to a bound, and a sample.

May be imported by `rlmm.cli.tier_maintenance`.
"""
