//! Record values of the usual form, read without a copy.
//!
//! Minimal varints, no unknown tags, rising leader epochs, short custom metadata, as every broker
//! writes them. Everything else is left to `rlmm.metadata.decoding`. What is read here means the
//! same there; a malformed topic name gives a key that no user partition has.

use crate::bytes::Reader;
use crate::partition::Update;
use crate::row::{NOT_FINISHED, NewRow, Row, STARTED, Uuid, push_epoch};

const SHORT_MAX: u8 = 0x7F;
const STATE_MAX: u8 = 3;

pub enum Value<'a> {
    Start { key: &'a [u8], new: NewRow },
    Update { key: &'a [u8], uuid: Uuid, update: Update<'a> },
}

pub fn read(value: &[u8]) -> Option<Value<'_>> {
    let mut reader = Reader::new(value);
    let (frame, api, version) = (reader.u8()?, reader.u8()?, reader.u8()?);
    if frame != 1 || version != 0 || api > 1 {
        return None;
    }
    let name = *value.get(3)?; // length of the topic name + 1
    if name == 0 || name > SHORT_MAX {
        return None;
    }
    let key = reader.take(usize::from(name) + 20)?;
    if reader.u8()? != 0 {
        return None;
    }
    let uuid = reader.uuid()?;
    if reader.u8()? != 0 {
        return None;
    }
    match api {
        0 => read_start(reader, uuid).map(|new| Value::Start { key, new }),
        _ => read_update(reader).map(|update| Value::Update { key, uuid, update }),
    }
}

fn read_update<'a>(mut reader: Reader<'a>) -> Option<Update<'a>> {
    let (broker, timestamp) = (reader.i32()?, reader.i64()?);
    let custom = read_custom(&mut reader)?;
    let target = reader.u8()?;
    if target > STATE_MAX || reader.u8()? != 0 || reader.left() > 0 {
        return None;
    }
    Some(Update { target, broker, timestamp, custom })
}

fn read_custom<'a>(reader: &mut Reader<'a>) -> Option<Option<&'a [u8]>> {
    match reader.u8()? {
        0 => Some(None),
        size if size <= SHORT_MAX => reader.take(usize::from(size) - 1).map(Some),
        _ => None,
    }
}

fn read_start(mut reader: Reader, uuid: Uuid) -> Option<NewRow> {
    let (start, end, broker) = (reader.i64()?, reader.i64()?, reader.i32()?);
    let (max_timestamp, event_timestamp) = (reader.i64()?, reader.i64()?);
    let count = reader.u8()?;
    if start < 0 || end < start || !(2..=SHORT_MAX).contains(&count) {
        return None;
    }
    let (epoch, first) = (reader.i32()?, reader.i64()?);
    if reader.u8()? != 0 {
        return None;
    }
    let mut tail = Vec::new();
    let mut previous = epoch;
    for _ in 2..count {
        let pair = (reader.i32()?, reader.i64()?);
        if reader.u8()? != 0 || pair.0 <= previous {
            return None;
        }
        previous = pair.0;
        push_epoch(&mut tail, pair);
    }
    let size = reader.i32()?;
    let custom = read_custom(&mut reader)?;
    tail.extend_from_slice(custom.unwrap_or_default());
    let txn_index_empty = match reader.rest() {
        [0, 0] => false,
        [0, 1, 0, 1, 1] => true,
        _ => return None,
    };
    let row = Row {
        uuid,
        finish: NOT_FINISHED,
        event_timestamp,
        start,
        end,
        max_timestamp,
        first,
        epoch,
        broker,
        size,
        partition: 0,
        more_epochs: u32::from(count) - 2,
        state: STARTED,
        txn_index_empty,
        has_custom: custom.is_some(),
    };
    Some(NewRow { row, tail: tail.into_boxed_slice() })
}
