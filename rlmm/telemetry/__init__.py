"""
What the service says of itself while it runs: its log lines.

Everybody else logs through the standard library with lazy arguments and knows nothing of what
stands here. Settings and the counting of repeats are pure; only `logs` touches streams and loggers.
"""
