"""
Fetches that wait at brokers, and the record sets that they return.

May be imported by `rlmm.log.kafka`.

- `broker_fetches`: What is to be fetched from one broker, and the tasks that do it.
- `fetcher`: The raw fetch.
- `getmany`: The fallback fetch.
- `getmany_consumer`: The consumer of one partition, as the fallback reads it.
- `history_reads`: How reads are answered that are none of a follower's.
- `partition_reads`: A read that waits, and what is known of its partition between reads.
- `whole_batches`: Where the whole batches of an answer end.
"""
