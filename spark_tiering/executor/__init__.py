"""
What runs on executors, one unit at a time: a segment inspected, copied, looked for, taken away.

    result = copy_segment(task)      # in whatever process; task and result are plain values
    result.outcome.is_done           # then the copy may be finished

By module, bottom up:

    throttle            the pace of a job, in shares to its slots
    tasks               what a unit is told, and what it tells
    limited_io          files and a store under a deadline, at a pace, counted
    stop_mark           whether a unit may begin, or its job is told to stop
    object_check        what the store has of a segment
    object_deletion     its objects taken away
    segment_writer      its objects written, each verified, the manifest last
    segment_inspection  a segment read where it lies
    segment_copy        all of that: one segment that ends up in the store whole, or not at all

Invariants:

- A manifest is written only when log and indexes are there, as they were read, from a source that
  still has what was read.
- What goes wrong with a source, a store or time is a value; errors are mistakes of who calls.
- A unit that is repeated, or carried out twice at once, ends with the same objects.
- Memory does not grow with a segment, and nothing is held between units but a store, its pace
  and when a mark that stops the job was not there.
- Nothing is taken away but by `ending`, and nothing is ever replaced.

May be imported by `rlmm.cli`, `spark_tiering.copy_job`, `spark_tiering.maintenance`,
`spark_tiering.storage`.
"""
