//! Record batches of format v2: the header, its checksum, and the records of one batch.
//!
//! Only what is sound and of the usual form is read here. `rlmm.records` names every fault, and
//! reads everything else.

use std::ops::Range;

use crate::bytes::Reader;

pub const HEADER_BYTES: usize = 61;
pub const BATCH_BYTES_MAX: usize = 128 * 1024 * 1024;
const LENGTH_FROM: usize = 12;
const CRC_FROM: usize = 21;
const MAGIC: u8 = 2;
const OFFSET_MAX: i64 = i64::MAX - 1;
const CODEC_MASK: u16 = 0x07;
const CONTROL_BIT: u16 = 0x20;

#[derive(Clone, Copy)]
pub struct Batch {
    pub start: usize,
    pub stop: usize,
    pub base_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
    pub leader_epoch: i32,
    pub record_count: u32,
    attributes: u16,
}

impl Batch {
    pub fn next_offset(&self) -> i64 {
        self.last_offset + 1
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    pub fn is_compressed(&self) -> bool {
        self.attributes & CODEC_MASK != 0
    }
}

/// Returns how many bytes the batch at byte `start` claims to have, whether it has them or not.
#[inline]
pub fn claimed_bytes(data: &[u8], start: usize) -> usize {
    let length = data.get(start..).and_then(|header| {
        let mut reader = Reader::new(header);
        reader.i64()?;
        usize::try_from(reader.i32()?).ok()
    });
    length.map_or(0, |length| length + LENGTH_FROM)
}

/// Returns the batch that begins at byte `start`; `None` unless it is whole and sound.
#[inline]
pub fn read(data: &[u8], start: usize) -> Option<Batch> {
    let header = data.get(start..start.checked_add(HEADER_BYTES)?)?;
    let mut reader = Reader::new(header);
    let base_offset = reader.i64()?;
    let length = usize::try_from(reader.i32()?).ok()?;
    let leader_epoch = reader.i32()?;
    let magic = reader.u8()?;
    let checksum = reader.i32()? as u32;
    let attributes = u16::from_be_bytes([header[CRC_FROM], header[CRC_FROM + 1]]);
    reader.take(2)?;
    let last_delta = reader.i32()?;
    reader.take(8)?;
    let max_timestamp = reader.i64()?;
    let record_count = u32::from_be_bytes([header[57], header[58], header[59], header[60]]);
    let stop = start + LENGTH_FROM + length;
    let last_offset = base_offset.checked_add(last_delta.into())?;
    let is_plausible = magic == MAGIC
        && (HEADER_BYTES - LENGTH_FROM..=BATCH_BYTES_MAX - LENGTH_FROM).contains(&length)
        && stop <= data.len()
        && 0 <= base_offset
        && base_offset <= last_offset
        && last_offset <= OFFSET_MAX
        && record_count <= i32::MAX as u32;
    if !is_plausible || crc32c::crc32c(&data[start + CRC_FROM..stop]) != checksum {
        return None;
    }
    Some(Batch { start, stop, base_offset, last_offset, max_timestamp, leader_epoch, record_count, attributes })
}

pub struct Record {
    pub offset: i64,
    /// Where the value stands; `None` in a tombstone.
    pub value: Option<Range<usize>>,
    /// The byte behind the record.
    pub stop: usize,
}

/// Reads the record at byte `at` of an uncompressed batch; `None` unless it is of the usual form,
/// without headers.
#[inline]
pub fn read_record(data: &[u8], batch: &Batch, at: usize) -> Option<Record> {
    let mut reader = Reader::new(data.get(at..batch.stop)?);
    let size = usize::try_from(reader.zigzag()?).ok()?;
    let stop = at.checked_add(reader.at())?.checked_add(size)?;
    reader.u8()?; // attributes, all unused
    reader.zigzag()?; // the time
    let delta = reader.zigzag()?;
    if let Ok(length) = usize::try_from(reader.zigzag()?) {
        reader.take(length)?;
    }
    let value = match usize::try_from(reader.zigzag()?) {
        Ok(length) => {
            let from = at + reader.at();
            reader.take(length)?;
            Some(from..from + length)
        }
        Err(_) => None,
    };
    let has_no_headers = reader.u8()? == 0;
    let offset = batch.base_offset.checked_add(delta)?;
    (has_no_headers && at + reader.at() == stop).then_some(Record { offset, value, stop })
}

/// Returns whether every record of the batch can be read here, in order, and nothing else is in
/// it; with `is_dense`, whether each offset has a record as well.
pub fn is_readable(data: &[u8], batch: &Batch, is_dense: bool) -> bool {
    let mut at = batch.start + HEADER_BYTES;
    let mut next_offset = batch.base_offset;
    for _ in 0..batch.record_count {
        let Some(record) = read_record(data, batch, at) else { return false };
        let is_next = next_offset <= record.offset && record.offset <= batch.last_offset;
        if !is_next || (is_dense && record.offset != next_offset) {
            return false;
        }
        next_offset = record.offset + 1;
        at = record.stop;
    }
    at == batch.stop && (!is_dense || next_offset == batch.next_offset())
}
