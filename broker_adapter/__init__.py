"""
The broker's side of rlmm: clients for programs in Python, and what a broker is told of our errors.

`client` asks a service on an event loop, `blocking` from threads; `stand_in` needs no service and
is for tests. `translate` names the exception that a broker expects for each error.
"""
