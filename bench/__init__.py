"""The benchmarks: what measures the figures that the documents name. Never installed."""
