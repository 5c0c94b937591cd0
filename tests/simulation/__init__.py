"""
The simulator: several engines, their log, network, clocks and disks, driven by one seed.

    python -m tests.simulation --from 0 --seeds 1000   # many seeds, on two processes
    python -m tests.simulation --seed 17 --verbose     # one seed and its story

Its last line is an entry for `RUNS.md`, which lists the seeds that were run, by commit.

Nothing in it is left to chance or to the machine: time leaps, threads run inline, and every random
number comes from the seed. So a seed replays exactly.

Modules, bottom up:

    chance, story      random streams of a seed, and the events of a run in lines and as a digest
    loop               an event loop that leaps in time and has no threads; disks pause on it
    disk               a disk in memory: a crash loses bytes that were not forced to the medium
    branches           what elections left of the records of a partition, and what came after
    topic              the topic, and every record that was ever stored in it
    reference          the state that a replay of the topic gives, offset by offset
    fetches            fetches with leader epochs, and their answers as brokers give them
    wire               the network between one engine and the topic
    tiers              the lives of segments that writers play
    watched_shard      a shard that the judge watches, and snapshots with their lineage
    machine            one engine with its disk, clock and wire: start, stop, crash
    invariants         the invariants, and the judge of a run
    misplaced          when an engine must take its topic for one that got partitions
    clients            readers and writers, and their checks of the answers
    failures           failures around engines, and their end
    elections          clean elections, and those that lose records
    cleaner            batches that the cleaner thinned out or wrote anew
    steps              the possible next steps
    world              a run from its seed to its outcome
    broken             engines with one fault each, which the simulator must catch
"""
