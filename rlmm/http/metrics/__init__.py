"""
What Prometheus is shown: one table of metrics, each with what it means and when to worry.

The collector reads the table and so does docs/metrics.md; nothing is counted here. Invariant: what
a series can be called is bounded by what is configured, never by what clients or topics are called,
unless somebody asks for that and says how many.
"""
