//! The outcome of one event, as a number that `verdict_of` in `rlmm/metadata/native_partitions.py` turns
//! into a verdict. It counts on the order of `Reason` and of the kinds here.

/// Low byte: the kind. Then the remark or the reason, the current state + 1, the requested state.
pub type Verdict = u32;

pub const APPLIED: Verdict = 0;
pub const DUPLICATE: Verdict = 1;
const REJECTED: u32 = 2;

#[derive(Clone, Copy)]
pub enum Remark {
    DisplacedAnotherSegment = 1,
    FinishedByAnotherBroker,
    PartitionBeingDeleted,
    PartitionWasDeleted,
    PartitionDeleteOutOfOrder,
}

#[derive(Clone, Copy)]
pub enum Reason {
    UnknownSegment = 1,
    IllegalTransition,
    UpdateToStarted,
}

pub fn remarked(remark: Remark) -> Verdict {
    APPLIED | (remark as u32) << 8
}

pub fn rejected(reason: Reason, current: Option<u8>, requested: u8) -> Verdict {
    let current = current.map_or(0, |state| u32::from(state) + 1);
    REJECTED | (reason as u32) << 8 | current << 16 | u32::from(requested) << 24
}
