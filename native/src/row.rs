//! One segment: its fields, and its bytes in a state image.
//!
//! `rlmm/metadata/row.py` describes the bytes. What few segments have, further leader epochs and
//! custom metadata, is the *tail* of a row: the epochs behind the first one, 12 bytes each, then the
//! custom metadata.

use crate::bytes::{Reader, put_varint};

pub type RowNo = u32;
pub type Uuid = [u8; 16];

pub const NOT_FINISHED: i64 = -1;
pub const STARTED: u8 = 0;
pub const FINISHED: u8 = 1;
pub const DELETE_STARTED: u8 = 2;
pub const DELETE_FINISHED: u8 = 3;

/// Bytes of a row without a tail, and of them those before the leader epochs.
pub const PLAIN_BYTES: usize = 65;
const EPOCHS_AT: usize = 46;

/// Bytes of one leader epoch in a tail: epoch, first offset.
pub const EPOCH_BYTES: usize = 12;

#[derive(Clone)]
pub struct Row {
    pub uuid: Uuid,
    /// Metadata offset of the last COPY_SEGMENT_FINISHED.
    pub finish: i64,
    pub event_timestamp: i64,
    pub start: i64,
    pub end: i64,
    pub max_timestamp: i64,
    /// First offset of `epoch` in the segment.
    pub first: i64,
    /// The first of its leader epochs.
    pub epoch: i32,
    pub broker: i32,
    pub size: i32,
    pub partition: u32,
    /// Leader epochs behind the first one; they stand in the tail.
    pub more_epochs: u32,
    pub state: u8,
    pub txn_index_empty: bool,
    /// Whether there is custom metadata, which may be empty.
    pub has_custom: bool,
}

/// Further leader epochs and custom metadata; nearly always empty.
pub type Tail = Box<[u8]>;

/// A row as an image or a record states it, before it has a number.
pub struct NewRow {
    pub row: Row,
    pub tail: Tail,
}

/// Leader epoch, and its first and last offset in the segment.
pub type EpochRange = (i32, i64, i64);

impl Row {
    pub fn has_tail(&self) -> bool {
        self.more_epochs > 0 || self.has_custom
    }

    /// Returns each leader epoch with its range: an epoch ends where the next one begins.
    pub fn ranges<'a>(&self, tail: &'a [u8]) -> Ranges<'a> {
        Ranges { next: Some((self.epoch, self.first)), left: epochs_of(self, tail), end: self.end }
    }

    /// Returns the range of `epoch`, if the segment lists it.
    pub fn range(&self, tail: &[u8], epoch: i32) -> Option<(i64, i64)> {
        if self.more_epochs == 0 {
            return (self.epoch == epoch).then_some((self.first, self.end));
        }
        let more = epochs_of(self, tail);
        let count = self.more_epochs as usize;
        let last_of = |number: usize| match number < count {
            true => epoch_at(more, number).1.wrapping_sub(1), // as in Java's arithmetic
            false => self.end,
        };
        if self.epoch == epoch {
            return Some((self.first, last_of(0)));
        }
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if epoch_at(more, middle).0 < epoch {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == count || epoch_at(more, low).0 != epoch {
            return None;
        }
        Some((epoch_at(more, low).1, last_of(low + 1)))
    }

    pub fn custom<'a>(&self, tail: &'a [u8]) -> Option<&'a [u8]> {
        self.has_custom.then(|| &tail[self.more_epochs as usize * EPOCH_BYTES..])
    }

    /// Appends the bytes of the row, as a state image holds them.
    pub fn write(&self, tail: &[u8], out: &mut Vec<u8>) {
        let plain = self.plain();
        if tail.is_empty() && !self.has_tail() {
            out.extend_from_slice(&plain);
            return;
        }
        out.extend_from_slice(&plain[..EPOCHS_AT]);
        put_varint(out, u64::from(self.more_epochs) + 2);
        for (epoch, first) in std::iter::once((self.epoch, self.first)).chain(pairs(epochs_of(self, tail))) {
            out.extend_from_slice(&epoch.to_be_bytes());
            out.extend_from_slice(&first.to_be_bytes());
            out.push(0);
        }
        out.extend_from_slice(&self.size.to_be_bytes());
        match self.custom(tail) {
            None => out.push(0),
            Some(custom) => {
                put_varint(out, custom.len() as u64 + 1);
                out.extend_from_slice(custom);
            }
        }
    }

    /// Returns the bytes of a row with one leader epoch and without custom metadata, as most are.
    #[inline]
    pub fn plain(&self) -> [u8; PLAIN_BYTES] {
        let mut out = [0; PLAIN_BYTES];
        out[0] = self.state;
        out[1] = u8::from(self.txn_index_empty);
        out[2..10].copy_from_slice(&self.finish.to_be_bytes());
        out[10..14].copy_from_slice(&self.broker.to_be_bytes());
        out[14..22].copy_from_slice(&self.event_timestamp.to_be_bytes());
        out[22..30].copy_from_slice(&self.start.to_be_bytes());
        out[30..38].copy_from_slice(&self.end.to_be_bytes());
        out[38..46].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[46] = 2; // one more than the number of leader epochs
        out[47..51].copy_from_slice(&self.epoch.to_be_bytes());
        out[51..59].copy_from_slice(&self.first.to_be_bytes());
        out[60..64].copy_from_slice(&self.size.to_be_bytes());
        out
    }

    /// Returns how many bytes `write` appends.
    pub fn written_len(&self, tail: &[u8]) -> usize {
        let custom = self.custom(tail).map_or(1, |custom| varint_len(custom.len() as u64 + 1) + custom.len());
        let count = self.more_epochs as usize + 1;
        46 + varint_len(count as u64 + 1) + count * (EPOCH_BYTES + 1) + 4 + custom
    }

    /// Returns whether two rows say the same, but for their finish offsets.
    pub fn same_content(&self, tail: &[u8], other: &Row, other_tail: &[u8]) -> bool {
        self.state == other.state
            && self.txn_index_empty == other.txn_index_empty
            && self.broker == other.broker
            && self.event_timestamp == other.event_timestamp
            && self.start == other.start
            && self.end == other.end
            && self.max_timestamp == other.max_timestamp
            && self.epoch == other.epoch
            && self.first == other.first
            && self.size == other.size
            && self.more_epochs == other.more_epochs
            && self.has_custom == other.has_custom
            && tail == other_tail
    }
}

/// Reads a row of an image; `None` unless `Row::write` writes exactly these bytes for a segment
/// that can be.
pub fn read_row(uuid: Uuid, partition: u32, bytes: &[u8]) -> Option<NewRow> {
    let mut reader = Reader::new(bytes);
    let state = reader.u8()?;
    let flag = reader.u8()?;
    let finish = reader.i64()?;
    let broker = reader.i32()?;
    let event_timestamp = reader.i64()?;
    let start = reader.i64()?;
    let end = reader.i64()?;
    let max_timestamp = reader.i64()?;
    let count = usize::try_from(reader.canonical_varint(5)?).ok()?.checked_sub(1)?;
    if count == 0 || reader.left() < count * (EPOCH_BYTES + 1) {
        return None;
    }
    let mut tail = Vec::with_capacity((count - 1) * EPOCH_BYTES);
    let (mut first_pair, mut previous) = (None, None);
    for _ in 0..count {
        let pair = (reader.i32()?, reader.i64()?);
        if reader.u8()? != 0 || previous.is_some_and(|epoch| epoch >= pair.0) {
            return None;
        }
        previous = Some(pair.0);
        if first_pair.is_none() {
            first_pair = Some(pair);
        } else {
            push_epoch(&mut tail, pair);
        }
    }
    let (epoch, first) = first_pair?;
    let size = reader.i32()?;
    let custom_len = usize::try_from(reader.canonical_varint(5)?).ok()?;
    let has_custom = custom_len > 0;
    if reader.left() != custom_len.saturating_sub(1) || custom_len > i32::MAX as usize {
        return None;
    }
    tail.extend_from_slice(reader.rest());
    let is_sound = match state {
        STARTED => finish == NOT_FINISHED,
        FINISHED => finish >= 0,
        DELETE_STARTED => finish >= NOT_FINISHED,
        _ => false,
    };
    if !is_sound || flag > 1 || start < 0 || end < start {
        return None;
    }
    let row = Row {
        uuid,
        finish,
        event_timestamp,
        start,
        end,
        max_timestamp,
        first,
        epoch,
        broker,
        size,
        partition,
        more_epochs: u32::try_from(count - 1).ok()?,
        state,
        txn_index_empty: flag == 1,
        has_custom,
    };
    Some(NewRow { row, tail: tail.into_boxed_slice() })
}

/// The further epochs of a row, in its tail.
pub fn epochs_of<'a>(row: &Row, tail: &'a [u8]) -> &'a [u8] {
    &tail[..row.more_epochs as usize * EPOCH_BYTES]
}

pub fn push_epoch(tail: &mut Vec<u8>, (epoch, first): (i32, i64)) {
    tail.extend_from_slice(&epoch.to_be_bytes());
    tail.extend_from_slice(&first.to_be_bytes());
}

fn epoch_at(epochs: &[u8], number: usize) -> (i32, i64) {
    let at = number * EPOCH_BYTES;
    let mut reader = Reader::new(&epochs[at..at + EPOCH_BYTES]);
    (reader.i32().unwrap_or(0), reader.i64().unwrap_or(0))
}

fn pairs(epochs: &[u8]) -> impl Iterator<Item = (i32, i64)> + '_ {
    (0..epochs.len() / EPOCH_BYTES).map(|number| epoch_at(epochs, number))
}

fn varint_len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub struct Ranges<'a> {
    next: Option<(i32, i64)>,
    left: &'a [u8],
    end: i64,
}

impl Iterator for Ranges<'_> {
    type Item = EpochRange;

    fn next(&mut self) -> Option<EpochRange> {
        let (epoch, first) = self.next.take()?;
        if self.left.is_empty() {
            return Some((epoch, first, self.end));
        }
        let following = epoch_at(self.left, 0);
        self.left = &self.left[EPOCH_BYTES..];
        self.next = Some(following);
        Some((epoch, first, following.1.wrapping_sub(1)))
    }
}
