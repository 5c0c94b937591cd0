//! The application of a record set to the state, in slices.
//!
//! What is damaged, compressed or of an unusual form stops it: `rlmm.metadata.native_shard` applies
//! that batch or value, and goes on here.

use std::ops::Range;
use std::time::Instant;

use crate::batch::{self, Batch, HEADER_BYTES};
use crate::shared::Turn;
use crate::state::{FREED_AT_A_TIME, State};
use crate::value::{self, Value};
use crate::verdict::{APPLIED, Verdict};

/// Batches without a record that one call steps over at most, when its events are limited.
const STEPS_MAX: u32 = 1000;
/// Records, or batches, between two looks at the time.
const LOOK_EVERY: u32 = 32;
/// Entries, and values that passed, of one slice: what Python makes of them is bounded by it.
const ENTRIES_MAX: usize = 32;
const PASSED_MAX: usize = 512;
/// A batch from this size on is checked without the lock.
const LONG_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All is applied.
    End,
    /// The limit of events, or the time, is used up.
    Limit,
    /// The batch at `at` is not for this reader.
    Batch,
    /// The next value of the open batch is not for this reader.
    Value,
    /// Too many batches without a record.
    Steps,
}

struct Open {
    batch: Batch,
    /// The byte where the next record begins.
    at: usize,
    left: u32,
}

/// How far one record set is read.
pub struct Walk {
    /// The byte where the next batch begins.
    pub at: usize,
    /// No batch may begin below it.
    pub floor: i64,
    pub last: Option<Batch>,
    /// The largest time of the batch that was applied last, if any of its records has one.
    pub timestamp: i64,
    pub closed: bool,
    open: Option<Open>,
}

impl Walk {
    pub fn new(at: usize, floor: i64) -> Self {
        Walk { at, floor, last: None, timestamp: -1, closed: false, open: None }
    }
}

pub struct Entry {
    pub offset: i64,
    pub verdict: Verdict,
    pub value: Range<usize>,
}

#[derive(Default)]
pub struct Counts {
    /// Without a remark; all others are entries.
    pub applied: u64,
    pub control: u64,
    pub missing: u64,
    pub redelivered: u64,
}

/// One call: its limits, and what comes of it.
pub struct Slice<'a> {
    pub data: &'a [u8],
    pub position: i64,
    /// The end of the record set, where it is known.
    pub limit: Option<i64>,
    pub events_left: u64,
    pub is_limited: bool,
    pub until: Instant,
    pub holes_are_damage: bool,
    pub keeps_passed: bool,
    pub counts: Counts,
    pub entries: Vec<Entry>,
    pub passed: Vec<(i64, Option<Range<usize>>)>,
}

impl Slice<'_> {
    pub fn apply(&mut self, walk: &mut Walk, turn: &mut Turn) -> Stop {
        let mut steps = 0;
        let mut looks = 0;
        turn.state().free_some(FREED_AT_A_TIME); // a call may be over before the first look
        loop {
            if let Some(open) = &mut walk.open {
                if let Some(stop) = self.apply_records(open, turn, &mut looks) {
                    return stop;
                }
                self.skip_to(open.batch.next_offset());
                walk.timestamp = open.batch.max_timestamp;
                walk.closed = true;
                walk.at = open.batch.stop;
                walk.open = None;
            }
            if walk.at >= self.data.len() {
                return Stop::End;
            }
            if steps >= STEPS_MAX && self.is_limited {
                return Stop::Steps;
            }
            looks += 1;
            if self.is_over(looks, turn) {
                return Stop::Limit;
            }
            if batch::claimed_bytes(self.data, walk.at) >= LONG_BYTES {
                turn.let_go();
            }
            let Some(batch) = batch::read(self.data, walk.at).filter(|found| self.fits(found, walk.floor)) else {
                return Stop::Batch;
            };
            if batch.next_offset() > self.position {
                if batch.is_control() && !self.holes_are_damage {
                    self.skip_control(&batch);
                    steps += 1;
                } else if !batch.is_control() && !batch.is_compressed() && self.is_readable(&batch) {
                    steps += u32::from(batch.record_count == 0);
                    let at = batch.start + HEADER_BYTES;
                    walk.open = Some(Open { batch, at, left: batch.record_count });
                } else {
                    return Stop::Batch;
                }
            } else {
                self.counts.redelivered += u64::from(batch.record_count);
            }
            walk.floor = batch.next_offset();
            walk.last = Some(batch);
            walk.at = batch.stop;
        }
    }

    /// Steps over the value that stopped `apply`: its event is applied.
    pub fn pass_value(walk: &mut Walk, data: &[u8]) {
        let Some(open) = &mut walk.open else { return };
        if let Some(record) = batch::read_record(data, &open.batch, open.at) {
            open.at = record.stop;
            open.left -= 1;
        }
    }

    /// Returns the offset and the value that stopped `apply`.
    pub fn stopped_at(walk: &Walk, data: &[u8]) -> Option<(i64, Option<Range<usize>>)> {
        let open = walk.open.as_ref()?;
        let record = batch::read_record(data, &open.batch, open.at)?;
        Some((record.offset, record.value))
    }

    fn is_readable(&self, batch: &Batch) -> bool {
        let is_dense = self.holes_are_damage;
        (!is_dense || batch.base_offset <= self.position) && batch::is_readable(self.data, batch, is_dense)
    }

    /// Base offsets lie outside the checksum: they must rise and stay within the record set.
    fn fits(&self, batch: &Batch, floor: i64) -> bool {
        if batch.base_offset < floor || self.limit.is_some_and(|limit| batch.next_offset() > limit) {
            return false;
        }
        if batch.base_offset <= self.position {
            return true; // right behind the position there is nothing to doubt
        }
        let behind = match batch.stop == self.data.len() {
            true => self.limit,
            false => match batch::read(self.data, batch.stop) {
                Some(next) => Some(next.base_offset),
                None => return false,
            },
        };
        behind.is_none_or(|behind| behind >= batch.next_offset() || behind < floor)
    }

    fn is_over(&mut self, looks: u32, turn: &mut Turn) -> bool {
        turn.give_way();
        if looks % LOOK_EVERY != 0 {
            return false;
        }
        turn.state().free_some(FREED_AT_A_TIME);
        Instant::now() >= self.until
    }

    /// Applies the records that are left of the open batch, or returns why not all.
    fn apply_records(&mut self, open: &mut Open, turn: &mut Turn, looks: &mut u32) -> Option<Stop> {
        while open.left > 0 {
            let is_full = self.entries.len() >= ENTRIES_MAX || self.passed.len() >= PASSED_MAX;
            if self.events_left == 0 || is_full {
                return Some(Stop::Limit);
            }
            *looks += 1;
            if self.is_over(*looks, turn) {
                return Some(Stop::Limit);
            }
            let Some(record) = batch::read_record(self.data, &open.batch, open.at) else {
                return Some(Stop::Batch); // it was readable when it was opened
            };
            if record.offset >= self.position {
                let Some(value) = record.value.clone() else { return Some(Stop::Value) };
                let Some(verdict) = apply_value(&self.data[value.clone()], record.offset, turn.state()) else {
                    return Some(Stop::Value);
                };
                self.note(record.offset, verdict, value);
            } else {
                self.counts.redelivered += 1;
            }
            open.at = record.stop;
            open.left -= 1;
        }
        None
    }

    #[inline]
    fn note(&mut self, offset: i64, verdict: Verdict, value: Range<usize>) {
        self.skip_to(offset);
        self.position = offset + 1;
        self.events_left -= 1;
        if self.keeps_passed {
            self.passed.push((offset, Some(value.clone())));
        }
        if verdict == APPLIED {
            self.counts.applied += 1;
        } else {
            self.entries.push(Entry { offset, verdict, value });
        }
    }

    fn skip_control(&mut self, batch: &Batch) {
        let passed = batch.next_offset() - batch.base_offset.max(self.position);
        let control = passed.min(batch.record_count.into());
        self.skip_to(batch.next_offset() - control);
        self.counts.control += control as u64;
        self.position = batch.next_offset();
    }

    #[inline]
    fn skip_to(&mut self, offset: i64) {
        if offset > self.position {
            self.counts.missing += (offset - self.position) as u64;
            self.position = offset;
        }
    }
}

/// Applies one value; `None` unless it is of the usual form and of a known user partition.
#[inline]
fn apply_value(value: &[u8], offset: i64, state: &mut State) -> Option<Verdict> {
    match value::read(value)? {
        Value::Start { key, mut new } => {
            let number = state.find(key)?;
            new.row.partition = number;
            let (partition, rows) = state.partition_and_rows(number)?;
            Some(partition.add(new, rows))
        }
        Value::Update { key, uuid, update } => {
            let number = state.find(key)?;
            let (partition, rows) = state.partition_and_rows(number)?;
            Some(partition.update(&uuid, &update, offset, rows))
        }
    }
}
