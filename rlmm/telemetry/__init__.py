"""
The log lines of the service.

Other packages log through the standard library with lazy arguments and do not know this one.
Settings and the counting of repeats are pure; only `logs` touches streams and loggers.

May be imported by `rlmm.cli`, `rlmm.config`.

- `redaction`: The removal of names from log lines.
- `repeats`: Repeats of log lines, and the count of those not written.
- `settings`: Settings of log lines, and why the defaults are these.
"""
