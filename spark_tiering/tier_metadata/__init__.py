"""
The metadata of the tier, as a job needs it: read at one moment, and events published.

A job asks a sidecar, or runs an engine of its own over an embedded log or over Kafka's topic. Both
are one protocol, and both are blocking: they are for the one thread of a driver.

    protocol      the verbs of every access
    settings      where the metadata is
    image         one partition's image from its answers; images of one moment over a connection
    possible_partitions  partitions that a broker can have, and findings about all others
    reachability  whether a service listens there
    sidecar       by a service, through `broker_adapter`
    embedded      by an engine in this process
    opening       from settings to an access

A sidecar must answer for all partitions that the job is about: either it is assigned
them (`assignment = all`, or a list), and then the job comes without a broker id, as an
administrator, a reader or a broker whose token names no id; or the job comes as a broker, with an
id that no broker has, and is assigned what it asks about. An administrator is shown more than is
assigned, but what is not assigned is neither read as of now nor written with a verdict: it is
`NotAssigned`, and left out of an image. Events are never stored where their verdict cannot be read.

Invariants:
- An image is of one moment: each partition in it was exactly so when all events below the position
  of its metadata partition, and none above, were applied.
- It knows every event that was stored before it was asked for.
- An event counts as published only where it took effect, by its verdict or by the state.

May be imported by `rlmm.cli`, `spark_tiering.copy_job`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
