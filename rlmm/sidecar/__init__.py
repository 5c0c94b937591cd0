"""
The frame server: brokers ask and write over a Unix socket or TCP, in the frames of `rlmm.wire`.

What a frame says is read in `rlmm.wire`, what is true is known by the engine; here is only who may
ask what, in which order answers are made, and how much one client may take of what belongs to all.
Invariant: a read is dispatched in the turn of the event loop in which it is admitted, so that its
answer is as true as the engine's.

May be imported by `rlmm.config`, `rlmm.process`.

- `broker_starts`: One broker.
- `brokers`: What the brokers of a cluster said they lead and follow.
- `cluster_discovery`: The engines of the process as the frame server sees them.
- `cluster_file`: Clusters that brokers told of, in a small file of the data folder.
- `clusters`: Which engine answers a client.
- `connection`: One connection.
- `connection_trials`: Addresses that are told of clusters.
- `dispatch`: From a method and its arguments to the value that answers it.
- `listener`: The frame server as a part of the process.
- `log_queries`: The log itself, for who asks what happened.
- `operator_queries`: What operators look at.
- `session`: One client.
- `settings`: What can be chosen about the frame server, and why each default is what it is.
- `socket_reads`: What comes in by plain sockets, taken for all connections by one look at the
  system, and what is answered at once.
- `statistics`: What came in by the socket and what became of it, in figures.
- `unix_socket`: The file of a Unix socket.
- `waiting_requests`: Requests that may wait.
"""
