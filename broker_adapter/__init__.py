"""
The broker's side of rlmm: clients for programs in Python, and what a broker is told of our errors.

`client` asks a service on an event loop, `blocking` from threads; `stand_in` needs no service and
is for tests. `translate` names the exception that a broker expects for each error.

May be imported by `rlmm.state_sources`, `rlmm_demo.screens`, `rlmm_demo.world`,
`spark_tiering.tier_metadata`.

- `address`: Where a service listens, and how it is dialled.
- `assignment`: What this broker leads and follows, as far as anybody said.
- `call_execution`: How a call is carried out.
- `calls`: Each verb as a call.
- `connection`: One connection.
- `dialer`: How a service is reached.
- `kafka_exceptions`: For each of our errors, the exception that a broker expects from its
  metadata manager.
- `link`: A connection that comes back.
- `lost_answers`: What became of an event whose answer was lost, as far as the state tells.
- `retry_policies`: What is tried again, and how.
- `settings`: How patient a client is.
- `stand_in_answers`: What the stand-in answers to each method.
- `statistics`: What a client counted.
- `takeover`: What a client does when another start of its broker has taken over.
- `verbs`: The verbs of Kafka's RemoteLogMetadataManager, one to one, in Python's spelling.
"""

import rlmm.base.old_names  # noqa: F401  # modules that moved stay importable
