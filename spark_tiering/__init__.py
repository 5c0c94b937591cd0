"""
Batch copies of cold segments to an object store; so far what a copy is made of, no copying.

May be imported by `rlmm_demo`.

- `storage`: Tiered segments for programs.
- `adopt`: The tier of a live cluster.
- `copy_job`: A copy job.
- `copy_plan`: What a copy job does, decided before it does anything.
- `data_source`: `spark.read.format("rlmm")`.
- `decoding`: Record batches of a `.log` as Arrow, all batches of a window at a time.
- `execution`: Where units of work are run.
- `executor`: What runs on executors, one unit at a time.
- `job_registry`: Who works on what, kept in the store of objects itself.
- `layout`: The objects of a tiered segment, in the layout that the Aiven plugin reads and writes.
- `maintenance`: Care of a tier that is there.
- `read_plan`: Frozen plans.
- `reporting`: Progress and reports of the jobs, in one form.
- `segment_reading`: The bytes of a segment, wherever it lies.
- `segment_sources`: Where segments come from.
- `segments`: Segments of a broker's log as input of copies.
- `store_listing`: What lies in a store.
- `stores`: Where objects are kept.
- `tier_metadata`: The metadata of the tier, as a job needs it.
"""

import rlmm.base.old_names  # noqa: F401  # modules that moved stay importable
