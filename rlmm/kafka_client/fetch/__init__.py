"""
Fetches that wait at brokers, and the record sets that they return.

May be imported by `rlmm.log.kafka`.

- `broker_fetches`: Fetches from one broker, and the tasks that send them.
- `fetcher`: The fetcher, which gathers waiting reads into fetch requests.
- `history_reads`: Reads of history beside the followers of a log, by a fetcher of their own.
- `partition_reads`: Reads of one partition, and the whole batches of an answer.
"""
