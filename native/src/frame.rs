//! Frames of look-ups, as `rlmm/wire` describes them: the usual request read, its answer written.
//!
//! A request that any client of ours would not send in these bytes is not read here: Python reads
//! it, and refuses it where it is malformed.

use crate::bytes::Reader;
use crate::row::{Row, Uuid};

const ONE: &[u8] = b"\xabsegment_for";
const MANY: &[u8] = b"\xacsegments_for";
const NIL: u8 = 0xC0;
/// Longer names have a length of two bytes in a key.
const NAME_BYTES_MAX: usize = 126;

/// One look-up: what it names, as places in the frame.
pub struct Question {
    name_at: u32,
    name_bytes: u32,
    id_at: u32,
    pub number: u32,
    pub epoch: i32,
    pub offset: i64,
}

#[derive(Clone, Copy)]
pub struct Request {
    pub id: u32,
    pub is_batch: bool,
}

impl Question {
    pub fn id<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let at = self.id_at as usize;
        &frame[at..at + 16]
    }

    /// Returns whether `key`, the key of a user partition, is the one that this look-up names.
    pub fn names(&self, frame: &[u8], key: &[u8]) -> bool {
        let at = self.name_at as usize;
        let name = &frame[at..at + self.name_bytes as usize];
        let id_at = name.len() + 1;
        key.len() == id_at + 20
            && usize::from(key[0]) == id_at
            && &key[1..id_at] == name
            && &key[id_at..id_at + 16] == self.id(frame)
            && key[id_at + 16..] == self.number.to_be_bytes()
    }
}

/// Reads a frame into `questions`; `None` for anything unusual.
pub fn read(frame: &[u8], questions_max: usize, questions: &mut Vec<Question>) -> Option<Request> {
    let mut reader = Reader::new(frame);
    let announced = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
    if announced as usize != reader.left() || reader.u8()? != 0x93 {
        return None;
    }
    let id = u32::try_from(unsigned(&mut reader)?).ok()?;
    let is_batch = frame[reader.at()..].starts_with(MANY);
    if is_batch {
        reader.take(MANY.len())?;
        if reader.u8()? != 0x91 {
            return None;
        }
        let count = array_of(&mut reader)?;
        if count > questions_max {
            return None;
        }
        for _ in 0..count {
            questions.push(question(&mut reader)?);
        }
    } else if reader.take(ONE.len())? == ONE {
        questions.push(question(&mut reader)?);
    } else {
        return None;
    }
    (reader.left() == 0).then_some(Request { id, is_batch })
}

fn question(reader: &mut Reader) -> Option<Question> {
    if reader.u8()? != 0x93 || reader.u8()? != 0x93 || reader.take(2)? != [0xC4, 16] {
        return None;
    }
    let id_at = reader.at() as u32;
    reader.take(16)?;
    let name_bytes = match reader.u8()? {
        short @ 0xA0..=0xBF => usize::from(short & 0x1F),
        0xD9 => usize::from(reader.u8()?),
        _ => return None,
    };
    if name_bytes > NAME_BYTES_MAX {
        return None;
    }
    let name_at = reader.at() as u32;
    reader.take(name_bytes)?;
    let number = u32::try_from(unsigned(reader)?).ok()?;
    let epoch = i32::try_from(unsigned(reader)?).ok()?;
    let offset = i64::try_from(unsigned(reader)?).ok()?;
    let is_possible = number <= i32::MAX as u32;
    is_possible.then_some(Question { name_at, name_bytes: name_bytes as u32, id_at, number, epoch, offset })
}

/// Reads a number from 0 on, in any of its forms.
fn unsigned(reader: &mut Reader) -> Option<u64> {
    let form = reader.u8()?;
    let bytes = match form {
        0..=0x7F => return Some(form.into()),
        0xCC..=0xCF => reader.take(1 << (form - 0xCC))?,
        0xD0..=0xD3 => reader.take(1 << (form - 0xD0))?,
        _ => return None,
    };
    if form >= 0xD0 && bytes[0] >= 0x80 {
        return None; // below 0
    }
    Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn array_of(reader: &mut Reader) -> Option<usize> {
    match reader.u8()? {
        short @ 0x90..=0x9F => Some(usize::from(short & 0x0F)),
        0xDC => Some(usize::from(u16::from_be_bytes(reader.take(2)?.try_into().ok()?))),
        _ => None,
    }
}

// ---------------------------------------------------------------------------------- the answer

/// Begins the frame that answers `request`.
pub fn begin(request: Request, count: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0, 0, 0, 0, 0x93]);
    put_int(i64::from(request.id), out);
    out.push(NIL);
    if request.is_batch {
        put_array(count, out);
    }
}

/// Appends the answer to one look-up: the segment in `row`, or that there is none.
pub fn put_answer(request: Request, found: Option<(&Row, &[u8])>, out: &mut Vec<u8>) {
    if request.is_batch {
        out.extend_from_slice(&[0x92, NIL]); // no error
    }
    match found {
        None => out.push(NIL),
        Some((row, tail)) => put_row(row, tail, out),
    }
}

/// Writes the length of the frame in front; `None` for a payload above `bytes_max`.
pub fn end(bytes_max: usize, out: &mut [u8]) -> Option<()> {
    let payload = out.len() - 4;
    if payload > bytes_max {
        return None;
    }
    out[..4].copy_from_slice(&u32::try_from(payload).ok()?.to_be_bytes());
    Some(())
}

/// Appends a segment as `rlmm.wire.rows` packs it.
fn put_row(row: &Row, tail: &[u8], out: &mut Vec<u8>) {
    let uuid: &Uuid = &row.uuid;
    out.extend_from_slice(&[0x9B, 0xC4, 16]);
    out.extend_from_slice(uuid);
    put_int(row.start, out);
    put_int(row.end, out);
    put_int(row.broker.into(), out);
    put_int(row.max_timestamp, out);
    put_int(row.event_timestamp, out);
    put_array(row.more_epochs as usize + 1, out);
    for (epoch, first, _) in row.ranges(tail) {
        out.push(0x92);
        put_int(epoch.into(), out);
        put_int(first, out);
    }
    put_int(row.size.into(), out);
    match row.custom(tail) {
        None => out.push(NIL),
        Some(custom) => put_bytes(custom, out),
    }
    out.extend_from_slice(&[row.state, 0xC2 | u8::from(row.txn_index_empty)]);
}

/// Appends a number in its shortest form.
fn put_int(number: i64, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let (form, size) = match number {
        -32..=0x7F => (bytes[7], 0),
        0x80..=0xFF => (0xCC, 1),
        0x100..=0xFFFF => (0xCD, 2),
        0x1_0000..=0xFFFF_FFFF => (0xCE, 4),
        0x1_0000_0000.. => (0xCF, 8),
        -0x80..=-33 => (0xD0, 1),
        -0x8000..=-0x81 => (0xD1, 2),
        -0x8000_0000..=-0x8001 => (0xD2, 4),
        i64::MIN..=-0x8000_0001 => (0xD3, 8),
    };
    out.push(form);
    out.extend_from_slice(&bytes[8 - size..]);
}

fn put_array(count: usize, out: &mut Vec<u8>) {
    match count {
        0..=15 => out.push(0x90 | count as u8),
        16..=0xFFFF => {
            out.push(0xDC);
            out.extend_from_slice(&(count as u16).to_be_bytes());
        }
        _ => {
            out.push(0xDD);
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    match bytes.len() {
        size @ 0..=0xFF => out.extend_from_slice(&[0xC4, size as u8]),
        size @ 0x100..=0xFFFF => {
            out.push(0xC5);
            out.extend_from_slice(&(size as u16).to_be_bytes());
        }
        size => {
            out.push(0xC6);
            out.extend_from_slice(&(size as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}
