"""The benchmarks, which measure the figures in the documents. Never installed."""
