"""
The frame server and the HTTP server, and clients of both.

    frame_servers       a frame server over engines of a test
    http_servers        an HTTP server over engines of a test; every answer is held to its document
    serve_process       `rlmm serve` as a process of its own
    child_rlmm          `rlmm` that ends when its parent closes its standard input
    memory_service      a service over a topic in memory, in a thread
    fake_service        a socket that answers, is silent, hangs up or refuses as a test says
    access_files        certificates and tokens in files
    learned_clusters    clusters at addresses, and a process that learns them
    raw_frames          a client that sends any bytes as a frame
    frame_client_calls  writes and look-ups through a client of raw frames
    metadata_clients    every kind of client of `broker_adapter`, awaited in one way
    client_engine       the conformance corpus put to clients of `broker_adapter`
    recorded_frames     the frames of `tests/data/wire/frames.json`
    refused_frames      requests that a server refuses, for that file
    frame_round_trips   requests and answers read into types and written again
    released_frames     a conversation of version 1 of the frame protocol
    released_http       HTTP answers of version 1 of the API
    listing_process     a process that lists all segments of a service and prints its memory
"""
