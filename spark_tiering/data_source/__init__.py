"""
`spark.read.format("rlmm")`: tiered segments, and log folders of brokers, as a data source of Spark.

Rows and options are those of Spark's Kafka source. The list of segments comes from a frozen plan,
the manifests in the store, the current metadata, or log folders; later steps see extents alone.

    bounds                begin and end of a read
    option_values         single options, from their texts
    places                places of segments, and of the list of them
    options               all options
    extents               stretches of offsets, each with its segment
    query_coverage        the offsets that a query covers, and lost ones; offsets of times
    transaction_search  aborted transactions, up to the last decided offset
    pushed_filters        filters as bounds
    task_splits           shares for tasks
    index_places          from offsets and times to bytes of a log
    segment_opening       the bytes of an extent, in any process
    piece_reading         one piece as Arrow, with recently used indexes: the work of an executor
    listing_tier          segments of the tier, or of a frozen plan
    listing_folders       segments of log folders
    query_planning        a query from its options to shares
    source                batch queries of Spark, with their columns and errors
    stream                streaming queries of Spark, and their micro-batches

Invariants:

- Of every wanted range each record is given once, or its loss is an error or, by choice, a warning.
- The same plan gives the same rows at any time, and with any split into tasks.
- Index entries are believed as far as the log agrees with them.
- A reader of committed records gets no record of a transaction that is not decided yet.
- No client, key or credential is an option, or travels to executors: each process finds its own.

May be imported by `pyspark_rlmm`.
"""
