"""
The log lines of the service. Other packages log through the standard library alone.

May be imported by `rlmm.cli`, `rlmm.config`.

- `json_lines`: A log line as one JSON object.
- `line_thread`: Lines handed to the system by a thread, so that no reader holds up the service.
- `logs`: Log lines on a stream.
- `redaction`: The removal of names from log lines.
- `repeats`: Repeats of log lines, and the count of those not written.
- `settings`: Settings of log lines, and why the defaults are these.
"""
