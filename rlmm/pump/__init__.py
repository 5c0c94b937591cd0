"""
The pump: reads the log into shards, one follower for each metadata partition.

`replay` and `aside` decide, without I/O; `follower` is the task that reads one partition, `pump`
the one that keeps followers and assignment in step; `listener` and `kept` are what it tells and
asks of those it does not know; `verdicts` tells a writer what became of its event, `publish`
writes; `incidents` remembers what was not simply applied; `pace` and `budget` keep the pump from
taking more than its share of the event loop and of memory, and `freezing` the images of its states.

May be imported by `rlmm.config`, `rlmm.engine`, `rlmm.inspection`, `rlmm.sidecar`,
`spark_tiering.maintenance`.

- `damage_skipping`: Where a log goes on behind a batch that cannot be trusted.
- `log_connection`: How the log is reached.
- `settings`: What can be chosen about reading and writing the log, and why the defaults are
  these.
- `state_images`: The image of a state, taken out of it while others have their turns in between.
- `statistics`: How reading goes, in figures.
- `turn_taking`: One slice of work in each turn of the event loop, whoever's it is.
- `writer`: Writing.
"""
