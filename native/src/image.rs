//! Reading of state images: `rlmm/metadata/image.py` describes their bytes, `frozen` writes them.
//!
//! An image may come from a stranger: its cost and memory are in proportion to its bytes.

use crate::bytes::{Reader, has_room};
use crate::epoch::Epoch;
use crate::partition::{DELETE_OF_PARTITION_FINISHED, Delete};
use crate::row::{FINISHED, NOT_FINISHED, NewRow, read_row};
use crate::state::State;

pub const NO_DELETE: u8 = 0xFF;
/// Bytes of the shortest row with its id and length, and of the shortest leader epoch.
const ROW_BYTES_MIN: usize = 16 + 1 + 65;
const EPOCH_BYTES_MIN: usize = 7;
/// Memory for each byte of an image at most: what is read of it, and the state made of that.
const MEMORY_PER_BYTE: usize = 4;
/// Longest varint that a Python reader accepts.
const VARINT_BYTES_MAX: usize = 9;

struct ReadEpoch {
    epoch: i32,
    highest: Option<i64>,
    slots: Vec<(i64, usize)>,
    strays: Vec<usize>,
}

/// What an image says, checked; nothing is taken over yet.
pub struct ReadImage<'a> {
    pub key: &'a [u8],
    delete: Option<Delete>,
    rows: Vec<NewRow>,
    epochs: Vec<ReadEpoch>,
}

/// Reads an image; `None` unless an engine writes exactly these bytes and there is memory for it.
pub fn read(image: &[u8]) -> Option<ReadImage<'_>> {
    if !has_room(image.len().saturating_mul(MEMORY_PER_BYTE)) {
        return None; // Python's engine says so
    }
    let mut reader = Reader::new(image);
    let size = usize::try_from(reader.canonical_varint(VARINT_BYTES_MAX)?).ok()?;
    let key = reader.take(size)?;
    if !is_key(key) {
        return None;
    }
    let delete = match reader.u8()? {
        NO_DELETE => None,
        state if state <= DELETE_OF_PARTITION_FINISHED => {
            Some(Delete { state, broker: reader.i32()?, timestamp: reader.i64()? })
        }
        _ => return None,
    };
    let rows = read_rows(&mut reader)?;
    let epochs = read_epochs(&mut reader, &rows)?;
    let found = ReadImage { key, delete, rows, epochs };
    (reader.left() == 0 && agrees(&found)).then_some(found)
}

/// Returns whether `key` is the key of a user partition, in canonical form.
pub fn is_key(key: &[u8]) -> bool {
    let mut reader = Reader::new(key);
    let Some(length) = reader.canonical_varint(5) else { return false };
    let Ok(length) = usize::try_from(length) else { return false };
    let Some(name) = length.checked_sub(1).and_then(|size| reader.take(size)) else { return false };
    length <= i32::MAX as usize && std::str::from_utf8(name).is_ok() && reader.left() == 20
}

fn count(reader: &mut Reader, smallest: usize) -> Option<usize> {
    let count = usize::try_from(reader.canonical_varint(VARINT_BYTES_MAX)?).ok()?;
    (count.checked_mul(smallest)? <= reader.left()).then_some(count)
}

fn read_rows(reader: &mut Reader) -> Option<Vec<NewRow>> {
    let count = count(reader, ROW_BYTES_MIN)?;
    let mut rows: Vec<NewRow> = Vec::with_capacity(count);
    for _ in 0..count {
        let uuid = reader.uuid()?;
        let size = usize::try_from(reader.canonical_varint(VARINT_BYTES_MAX)?).ok()?;
        let row = read_row(uuid, 0, reader.take(size)?)?;
        if rows.last().is_some_and(|before| before.row.uuid >= uuid) {
            return None;
        }
        rows.push(row);
    }
    Some(rows)
}

fn read_epochs(reader: &mut Reader, rows: &[NewRow]) -> Option<Vec<ReadEpoch>> {
    let epoch_count = count(reader, EPOCH_BYTES_MIN)?;
    let mut epochs: Vec<ReadEpoch> = Vec::with_capacity(epoch_count);
    for _ in 0..epoch_count {
        let epoch = reader.i32()?;
        let highest = match reader.u8()? {
            0 => None,
            1 => Some(reader.i64()?),
            _ => return None,
        };
        if epochs.last().is_some_and(|before| before.epoch >= epoch) {
            return None;
        }
        let slot_count = count(reader, 9)?;
        let mut slots: Vec<(i64, usize)> = Vec::with_capacity(slot_count);
        for _ in 0..slot_count {
            let offset = reader.i64()?;
            let ordinal = usize::try_from(reader.canonical_varint(VARINT_BYTES_MAX)?).ok()?;
            let found = rows.get(ordinal)?;
            let range = found.row.range(&found.tail, epoch)?;
            let is_behind = slots.last().is_none_or(|before| before.0 < offset);
            if found.row.state != FINISHED || range.0 != offset || !is_behind {
                return None;
            }
            slots.push((offset, ordinal));
        }
        let stray_count = count(reader, 1)?;
        let mut strays: Vec<usize> = Vec::with_capacity(stray_count);
        for _ in 0..stray_count {
            let ordinal = usize::try_from(reader.canonical_varint(VARINT_BYTES_MAX)?).ok()?;
            let found = rows.get(ordinal)?;
            let is_behind = strays.last().is_none_or(|&before| before < ordinal);
            if !is_behind || found.row.range(&found.tail, epoch).is_some() {
                return None;
            }
            strays.push(ordinal);
        }
        epochs.push(ReadEpoch { epoch, highest, slots, strays });
    }
    Some(epochs)
}

/// Returns whether there is an entry for each epoch of a segment, with a watermark over those of
/// its segments that were finished.
fn agrees(image: &ReadImage) -> bool {
    image.rows.iter().all(|one| {
        one.row.ranges(&one.tail).all(|(epoch, _, last)| {
            let Ok(at) = image.epochs.binary_search_by_key(&epoch, |entry| entry.epoch) else { return false };
            let highest = image.epochs[at].highest;
            one.row.finish == NOT_FINISHED || highest.is_some_and(|highest| highest >= last)
        })
    })
}

/// Replaces one user partition of `state` by its image.
pub fn take_over(image: ReadImage, state: &mut State) {
    state.drop_partition(image.key);
    let number = state.ensure(image.key);
    let Some((partition, rows)) = state.partition_and_rows(number) else { return };
    partition.delete = image.delete;
    let mut numbers = Vec::with_capacity(image.rows.len());
    for mut new in image.rows {
        new.row.partition = number;
        numbers.push(rows.insert(new));
    }
    for read in image.epochs {
        let mut entry = Epoch::new(read.epoch);
        entry.highest = read.highest;
        for (offset, ordinal) in read.slots {
            entry.slots.append(offset, numbers[ordinal]);
        }
        partition.epochs.append(entry);
        partition.strays.extend(read.strays.iter().map(|&ordinal| (numbers[ordinal], read.epoch)));
    }
    partition.derive(&numbers, rows);
    state.settle(number);
}
