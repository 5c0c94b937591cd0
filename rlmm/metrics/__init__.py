"""
What Prometheus is shown: one table of metrics, each with what it means and when to worry.

The collector reads the table and so does docs/metrics.md; nothing is counted here. Invariant: what
a series can be called is bounded by what is configured, never by what clients or topics are called,
unless somebody asks for that and says how many.

May be imported by `rlmm.cli`, `rlmm.http`.

- `broker_files_metrics`: The metrics of what is served of brokers' folders.
- `cluster_metrics`: The metrics of each cluster.
- `http_statistics`: What was asked by HTTP and how it was answered, in figures.
- `metric`: What a metric is, and what one scrape has to read from.
- `os_statistics`: What the operating system says of this process.
- `page`: What a scrape is answered.
- `partition_metrics`: The metrics of a cluster's parts.
- `process_metrics`: The metrics of the process.
- `served_state`: What is shown, and where it is read from.
- `table`: Every metric there is, in the order in which they are described.
- `watch_metrics`: The metrics of what a cluster is asked about its brokers again and again.
"""
