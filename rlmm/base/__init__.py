"""
Small building blocks for every package: time, pauses, waiting, threads, locks.

May be imported by every package above it in the layers of `pyproject.toml`.

- `backoff`: The pauses between attempts, in one place.
- `clock`: Time as everything here sees it.
- `closing`: Objects that a `with` block closes.
- `doorbell`: Tasks wait for a doorbell without polling.
- `duration_histogram`: A histogram of durations.
- `endable_call`: A call of one task that other tasks may end.
- `folder_lock`: A lock for one folder.
- `freed_memory`: Memory that is freed goes back to the system.
- `java_properties`: Java's properties files, read as `java.util.Properties` reads them.
- `log_context`: The context of log lines.
- `loop_call`: A call that a thread makes on an event loop, and waits for.
- `loop_thread`: An event loop in a thread of its own, and blocking calls on it.
- `loopback`: Whether an address is this machine.
- `native_core`: The native core, and which engine of shards this process uses.
- `old_names`: Modules that moved, under their old names, for one version.
- `paused_reading`: Reading of a transport that is paused from its first byte on.
- `private_files`: Owners and modes of files with secrets, and of the data folder.
- `secret`: A text that nothing shows.
- `threads`: Threads for work that would block the event loop, and how a task waits for them.
- `time_text`: Times, and times that passed, as people say them.
- `topic_names`: Topic names, by the rule of Kafka's brokers.
- `version`: The version of rlmm.
- `visible_text`: Words of others, escaped for a terminal.
- `whole_numbers`: Checks of the whole numbers among settings.
"""
