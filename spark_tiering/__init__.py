"""
Batch jobs on Kafka's tiered storage: they copy cold segments to an object store, and maintain the
tier.

May be imported by `rlmm_demo`.

- `adopt`: The adoption of a live cluster's topics into the tier.
- `copy_job`: A copy job.
- `copy_plan`: The plan of a copy job, made before the job does anything.
- `data_source`: `spark.read.format("rlmm")`.
- `decoding`: Record batches of a `.log` as Arrow, all batches of a window at a time.
- `execution`: Engines that run units of work.
- `executor`: Units of work on executors.
- `job_registry`: Jobs and their topics, kept in the object store itself.
- `layout`: The objects of a tiered segment, in the layout that the Aiven plugin reads and writes.
- `maintenance`: Maintenance of an existing tier.
- `read_plan`: Frozen plans of reads.
- `reporting`: Progress and reports of the jobs, in one form.
- `segment_reading`: The bytes of a segment, in a tier or in a broker's folder.
- `segment_sources`: Sources of segments.
- `segments`: Segments of a broker's log as input of copies.
- `storage`: Tiered segments for programs.
- `store_listing`: Listings of a store's objects.
- `stores`: Object stores.
- `tier_metadata`: The metadata of the tier, as a job needs it.
"""

import rlmm.base.old_names  # noqa: F401  # modules that moved stay importable
