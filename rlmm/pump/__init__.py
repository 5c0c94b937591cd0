"""
The pump: reads the log into shards, one follower for each metadata partition.

`replay` and `aside` decide, without I/O; `follower` is the task that reads one partition, `pump`
the one that keeps followers and assignment in step; `listener` and `kept` are what it tells and
asks of those it does not know; `verdicts` tells a writer what became of its event, `publish`
writes; `incidents` remembers what was not simply applied; `pace` and `budget` keep the pump from
taking more than its share of the event loop and of memory, and `freezing` the images of its states.
"""
