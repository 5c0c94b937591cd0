"""
Every error of rlmm, in one tree.

Two questions decide the class: which side is at fault, and would waiting help. Expected outcomes
(an event that the state machine rejects, a record that cannot be decoded) are not here: they are
values, see `rlmm.metadata.verdicts`.

    RlmmError
    ├── ConfigError           the command or its files are wrong: nothing was started, correct it
    │   ├── TopicAbsent       the metadata topic does not exist: a service waits for it
    │   └── FolderInUse       another process, or another part of this one, holds the folder
    ├── RequestError          the caller asked for something that cannot be meant
    │   ├── InvalidArgument   a value no broker could hold: refused before any I/O
    │   ├── NotPublishable    a record that would stop a stock broker's consumer: never written
    │   ├── NotWritable       an observer, or a log without a producer: write somewhere else
    │   ├── NotPermitted      the client may not: the message names the role that may
    │   │   └── Superseded    another start of the same broker took over: two have one id
    │   ├── ProtocolError     bytes that are no request or answer: the connection ends
    │   ├── UnsupportedVersion  no version of the protocol is known on both sides: update one
    │   ├── UnknownMethod     a request that this version of the service does not know
    │   ├── WrongCluster      another cluster's metadata is served here: both are named
    │   └── EventRejected     the state machine refuses the event: read the state, then decide
    ├── NotFound
    │   ├── UnknownPartition  no event of that user partition was ever stored, or it is not loaded
    │   └── FileAbsent        no such file of a broker's partition is here, or none any more
    ├── NotSealed             a broker's file that may still change, or is not stable: ask later
    ├── NotAssigned           the user partition is not this service's: ask its service
    ├── NotReady              its history is not read up to its target: wait and ask again
    ├── OverBudget            the memory budget is used up: nothing more is taken until it shrinks
    ├── TooBusy               a client asked for more at once than it may: fewer, or later
    ├── SidecarUnavailable    the service was not reached, or did not answer in time: ask again
    ├── Unresolved            a wait that ended without its answer; what was stored stays stored
    │   ├── OutcomeUnknown    the deadline passed: the event is stored, its verdict is not known
    │   ├── AssignmentLost    the partition was taken away while the caller waited
    │   ├── Stopped           the service is stopping, or has stopped
    │   └── PumpFailed        the task that reads the log died: a bug, the process ends
    ├── LogError              the log of events: Kafka's, or our own on disk
    │   ├── LogUnavailable    brokers away, no leader, a deadline passed: back off, ask again
    │   ├── LogTruncated      the offset lies outside what the log holds: rebuild from its start
    │   ├── LogRecreated      the topic is another one than it was: all that was read is void
    │   ├── AppendUncertain   unknown whether the event was stored: look before repeating
    │   ├── AppendRefused     the event was surely not stored
    │   ├── LogNotPermitted   credentials or rights do not suffice: an operator must act
    │   └── LogDamaged        stored bytes differ from those written: that partition is offline
    ├── ImageCorrupt          a state image that cannot be trusted: take an older one, or replay
    ├── SnapshotError         a snapshot could not be written, or not be used
    │   ├── SnapshotCorrupt   not what was written: take an older one, or replay
    │   ├── SnapshotForeign   of another cluster, topic or layout: it is void here
    │   ├── SnapshotUnsupported  of a version that this build does not know: never guessed at
    │   └── SnapshotRefused   not written, the disk is nearly full: make room
    ├── StoreError            the store of objects: a bucket, or a folder
    │   ├── StoreUnavailable  it did not answer: nothing was changed, ask again later
    │   ├── StoreAbsent       no such bucket or folder: make it, or correct its name
    │   ├── StoreNotPermitted  rights do not suffice: an operator must act
    │   ├── CredentialsAbsent  none were found: the message says where they are looked for
    │   └── StoreUnsuitable   it cannot do what is needed: take another store or setting
    ├── PlanStale             what a copy plan stands on has changed: make another one
    ├── TopicBusy             another copy job works on the topic: wait for it, or see to it
    ├── EngineUnfit           no unit of work can run on Spark: the message says what to correct
    ├── DataLost              offsets that were asked for are not there: they are named
    ├── TierUnreadable        a segment is there, and cannot be read: a finding's code says why
    ├── PartFailed            a part of the service died of a fault of ours: the process ends
    ├── StopTimedOut          a part did not end in time when it was asked to: it is named
    └── EngineFailed          an implementation under test died, hung or broke the protocol

May be imported by every package above it in the layers of `pyproject.toml`.

- `request_errors`: Errors of requests: the caller is wrong, must wait, or gets no answer.
- `root`: The root of all errors, and the first error of an exception group.
- `storage_errors`: Errors of storage: the log, snapshots, the tier, and jobs on it.
"""

from rlmm.errors.request_errors import *  # noqa: F403 - its errors are the public names
from rlmm.errors.root import *  # noqa: F403 - as above
from rlmm.errors.storage_errors import *  # noqa: F403 - as above
