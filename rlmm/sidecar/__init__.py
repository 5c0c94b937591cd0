"""
The frame server: brokers ask and write over a Unix socket or TCP, in the frames of `rlmm.wire`.

Invariant: a read is dispatched in the turn of the event loop in which it is admitted, so that its
answer is as true as the engine's.

May be imported by `rlmm.config`, `rlmm.process`.

- `answer_writes`: Writes the answers of one connection, and counts those that its client leaves.
- `assignment_requests`: Changes of what a broker leads and follows.
- `broker_assignments`: The brokers of a cluster, and the assignment that follows from them.
- `broker_starts`: The starts of one broker, and its partitions.
- `cluster_discovery`: The engines of the process, and clusters that brokers report.
- `cluster_file`: The file of learned clusters in the data folder.
- `clusters`: Finds the engine for a client, by the cluster id of its hello.
- `connection`: Reads requests of one connection and writes the answers, in fair turns.
- `connection_slots`: Places of connections, and which one goes when all are taken.
- `connection_trials`: Trials of addresses that a broker reported.
- `dispatch`: Answers reads: a table from method to function.
- `frame_answers`: Answers usual frames of look-ups by the native core, in one call.
- `held_bytes`: Bytes that connections hold of one kind, with a limit over all.
- `listener`: Listens, enforces time-outs, and ends connections in order.
- `log_queries`: Answers bounds and record batches of the log itself.
- `operator_queries`: Pages of user partitions, and state images.
- `request_audit`: Entries of the audit log about one session.
- `request_scheduler`: Turns of connections that have requests in line, in rounds of clients.
- `session`: The requests of one client, from its hello on, checked against its role.
- `settings`: Addresses and limits of the frame server.
- `socket_reads`: Reads plain sockets by one epoll for all connections.
- `statistics`: Counters of connections, requests and refusals.
- `unix_socket`: The file of the Unix socket.
- `waiting_requests`: Writes and reads that wait, within limits.
"""
