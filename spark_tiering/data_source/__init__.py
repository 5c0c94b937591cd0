"""
`spark.read.format("rlmm")`: tiered segments, and log folders of brokers, as a source of Spark's.

    spark.read.format("rlmm").option("store", "s3://bucket/kafka/").option("subscribe", "orders")

Rows and options are those of Spark's Kafka source, as far as they mean anything without a broker.
What there is comes from a frozen plan, from the manifests in the store, from the metadata as it is
now, or from log folders; all of it becomes extents, and from there on nothing asks where they came
from. `pyspark_rlmm` is where Spark finds the source by itself.

By module, bottom up:

    bounds                where a reader begins and ends
    option_values         single options, from their texts
    places                where segments and the list of them are
    options               everything that can be said
    schema                the columns
    extents               what there is: stretches of offsets, and the segment that has each
    query_coverage        what of it a query covers, and what is lost
    aborted_transactions  which transactions were aborted, and up to where that is known
    pushed_filters        filters as bounds
    task_splits           shares for tasks
    stream_steps          how far a micro-batch goes
    index_places          from offsets and times to bytes of a log
    segment_opening       the bytes of an extent, in whatever process
    index_cache           indexes that were read lately
    piece_reading         one piece as Arrow: what an executor does
    time_lookup           offsets of times
    transaction_state     what segments tell of transactions
    listing_frozen        what frozen plans hold
    listing_tier          who tells what the tier holds
    listing_folders       what log folders hold
    query_planning        a query from its options to shares
    spark_errors          how errors leave
    source, stream     Spark's side of it

Invariants:

- Rows are right or there is an error: of every range that is asked for, each record is given once,
  or its loss is an error, or, where losses are borne, a warning.
- The same plan gives the same rows, whenever and however it is cut.
- Index entries are believed as far as the log agrees with them.
- A reader of committed records is given none whose transaction's fate is not in what is there.
- No client, key or credential is an option, or travels to executors: each process finds its own.

May be imported by `pyspark_rlmm`.

- `source`: `spark.read.format("rlmm")` and `spark.readStream.format("rlmm")`.
- `stream`: `spark.readStream.format("rlmm")`.

May be imported by `pyspark_rlmm`.
"""
