"""
What every package may use: time, pauses, waiting, threads, locks. Knows nothing of Kafka or
metadata.

May be imported by every package above it in the layers of `pyproject.toml`.

- `background_work`: A thread for one piece of work that must not hold the event loop.
- `backoff`: The pauses between attempts, in one place.
- `clock`: Time as everything here sees it.
- `doorbell`: Waiting without polling.
- `duration_histogram`: How long something took, as a histogram.
- `folder_lock`: One user for one folder.
- `java_properties`: Java's properties files, read as `java.util.Properties` reads them.
- `log_context`: What every log line of a task or a block carries beside its message.
- `loop_thread`: An event loop in a thread of its own, for who waits with plain calls.
- `old_names`: Modules that moved, under their old names, for one version.
- `own_loop`: An event loop in a thread of its own, and calls to what lives on it from any other
  thread.
- `own_thread`: A thread for one short piece of work that may block, over when the work is.
- `time_text`: Times, and times that passed, as people say them.
- `version`: The version of rlmm.
"""
