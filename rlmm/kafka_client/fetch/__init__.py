"""
Fetches that wait at brokers, and the record sets that they return.

May be imported by `rlmm.log.kafka`.

- `broker_fetches`: What is to be fetched from one broker, and the tasks that do it.
- `fetcher`: The raw fetch.
- `history_reads`: Reads of history beside the followers of a log.
- `partition_reads`: A read that waits, and what is known of its partition between reads.
- `whole_batches`: Where the whole batches of an answer end.
"""
