"""
The metrics for Prometheus: one table, each metric with its meaning and when to worry.

Invariant: the configuration bounds the names of series; clients and topics do not, unless the
operator asks for that and sets a limit.

May be imported by `rlmm.cli`, `rlmm.http`.

- `broker_files_metrics`: The metrics of what is served of brokers' folders.
- `cluster_metrics`: The metrics of each cluster.
- `http_statistics`: Counts of HTTP requests and answers.
- `metric`: A metric, and the data of one scrape.
- `page`: The answer to a scrape, and the statistics of the operating system.
- `partition_metrics`: The metrics of a cluster's parts.
- `process_metrics`: The metrics of the process.
- `served_state`: The state that is shown, and its sources.
- `table`: Every metric there is, in the order in which they are described.
- `watch_metrics`: The metrics of repeated queries to a cluster about its brokers.
"""
