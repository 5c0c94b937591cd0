"""
Care of a tier that is there: its objects and its metadata compared, aged, cleaned and made anew.

    with open_tier(request) as tier:
        moment = tier.moment()                       # the metadata as it is now
        for one in moment.partitions():
            for segment in moment.segments(one.partition):
                ...

By module, bottom up:

    request  what every job is told: where the metadata is, where the objects are, which topics
    tier     the metadata as it is now, objects, engine, writer, cluster: for a driver that waits
    wiring   all of that from a request; the composition root
    verify/     every finished segment has its objects, and they are whole
    expire/     what retention has given up goes: metadata first, then objects
    audit/      bucket against metadata against cluster
    rebuild/    events from manifests, a difference to look at, and what is missing published
    backup/     every event of the metadata topic out to a file, and in again

Invariants:

- Nothing is changed without a flag that says so; what would be changed is shown without it.
- Metadata shrinks before objects go, never the other way round, and is read again before each goes.
- What could not be looked at is told as that, never as missing.

May be imported by `rlmm.cli`, `spark_tiering.data_source`.

- `empty_metadata`: The metadata of a log that nobody has begun yet.
- `json_lines`: JSON lines with a digest at their end, written and read.
- `line_streams`: The bytes of such files, plain or compressed.
- `new_file`: A new file that is there whole or not at all.
- `audit`: Audit.
- `backup`: Every event of the metadata topic out to one file, and from it into an empty log
  again.
- `expire`: What retention has given up goes.
- `rebuild`: Metadata made anew from what the objects say of themselves, for where the metadata
  topic is lost.
- `verify`: Whether every finished segment has its objects, and whether they are what they should
  be.
"""
