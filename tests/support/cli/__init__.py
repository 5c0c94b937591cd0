"""
Commands that look at the state, called in this process.

    memory_source     a source of the tiered state over a log in memory
    service_source    a running service as a source
    metadata_history  a metadata log with a history, and the state that it leads to
    shared_history    one history with every outcome of an event
    every_question    every question that a command can ask of that history
    state_commands    commands called at a time that stands still, over three sources
    incidents         incidents of operation, and the commands that show them
    json_schemas      the JSON schemas of answers
    recorded_outputs  the output of commands, compared with a recording
    demo_run          `rlmm demo` as a user runs it
    documented_desk   a folder in which the commands of a page are typed
    tier_command      `rlmm tier` over a tier of a test
    expire_command    `rlmm tier expire` by the command and by its function
"""
