"""
Clients for programs in Python: the broker's side of rlmm.

May be imported by `rlmm.state_sources`, `rlmm_demo.screens`, `rlmm_demo.world`,
`spark_tiering.tier_metadata`.

- `address`: The addresses of a service, and how a client dials them.
- `assignment`: The partitions that this broker leads and follows.
- `blocking`: Every verb for threads, derived from `verbs`.
- `call_execution`: Deadline, repeats, lost answers and counting of one call.
- `calls`: Each verb as a request, and how its answer is read.
- `client`: The client of a service, on an event loop.
- `connection`: One connection of a client: it sends requests and reads answers.
- `kafka_exceptions`: For each error of rlmm, the exception that a broker expects.
- `link`: A connection that is dialled again when it is lost.
- `lost_answers`: The outcome of an event whose answer was lost.
- `retry_policies`: Retry policies: the errors that are retried, and the pauses.
- `settings`: Time-outs and limits of a client.
- `stand_in`: A service in memory, for tests of brokers.
- `stand_in_answers`: The answer of the stand-in to each method.
- `statistics`: Counts of a client.
- `verbs`: The verbs of Kafka's RemoteLogMetadataManager, in Python's spelling.
"""

import rlmm.base.old_names  # noqa: F401  # modules that moved stay importable
