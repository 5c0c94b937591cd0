"""
The work of executors, one unit at a time: a segment is inspected, copied, checked or deleted.

    throttle            the pace of a job, in shares to its slots
    tasks               tasks and results of units
    limited_io          files and a store under a deadline, at a pace, counted
    stop_mark           the mark by which a job is asked to stop
    object_check        objects of a segment in the store
    object_deletion     objects of a segment deleted
    segment_writer      objects of a segment written, each verified, the manifest last
    segment_inspection  a segment read in its folder
    segment_copy        all of that: one segment that ends up in the store whole, or not at all

Invariants:
- A manifest is written only when log and indexes are there, as they were read, from a source that
  still has what was read.
- A fault of a source, a store or a deadline is a value; errors are mistakes of the caller.
- A unit that is repeated, or carried out twice at once, ends with the same objects.
- Memory does not grow with a segment, and nothing is held between units but a store, its pace
  and when a mark that stops the job was not there.
- Only `object_deletion` deletes, and no unit replaces an object.

May be imported by `rlmm.cli`, `spark_tiering.copy_job`, `spark_tiering.maintenance`,
`spark_tiering.storage`.
"""
