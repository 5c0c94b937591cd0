"""
Maintenance jobs of a tier: its objects and its metadata are compared, expired, cleaned and rebuilt.

    with open_tier(request) as tier:
        moment = tier.moment()                       # the metadata as it is now
        for one in moment.partitions():
            for segment in moment.segments(one.partition):
                ...

Invariants:

- A job changes nothing without a flag; without the flag it is a dry run.
- A job deletes metadata before objects, never the other way round, and reads it again before each.
- A job reports objects that it could not check as such, never as missing.

May be imported by `rlmm.cli`, `spark_tiering.data_source`.

- `audit`: Compares the bucket with the metadata and the cluster; deletes orphans.
- `backup`: Exports every event of the metadata topic to a file, and imports it.
- `expire`: Deletes segments by Kafka's rule of retention.
- `json_lines`: JSON lines with a digest at their end, plain or compressed, written and read.
- `new_file`: A new file that exists whole or not at all.
- `rebuild`: Makes events from manifests, and publishes those that the metadata lacks.
- `tier`: The request of a job, and its tier for a blocking driver: metadata, objects, engine.
- `verify`: Checks that the objects of every finished segment exist and are whole.
- `wiring`: The parts of a tier, opened for a request; the composition root.
"""
