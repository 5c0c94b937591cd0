"""
What the service says of itself while it runs: its log lines.

Everybody else logs through the standard library with lazy arguments and knows nothing of what
stands here. Settings and the counting of repeats are pure; only `logs` touches streams and loggers.

May be imported by `rlmm.cli`, `rlmm.config`.

- `redaction`: Names out of what is passed on.
- `repeats`: Which log lines are repeats of one another, and how many of them were not written.
- `settings`: What can be chosen about log lines, and why the defaults are these.
"""
