//! Record values and batches as brokers write them, and ways in which bytes are damaged.

use crate::batch::HEADER_BYTES;
use crate::bytes::put_varint;

const CRC_FROM: usize = 21;
const LENGTH_AT: usize = 8;
const MAGIC_AT: usize = 16;
const LENGTH_FROM: usize = 12;
/// Numbers at the ends of their types: lengths, counts, offsets.
const EXTREMES: [&[u8]; 14] = [
    b"\x00",
    b"\x01",
    b"\x7F",
    b"\x80",
    b"\xFF\x01",
    b"\x80\x00",
    b"\xFF\xFF\xFF\xFF\x07",
    b"\xFF\xFF\xFF\xFF\x0F",
    b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
    b"\x7F\xFF\xFF\xFF",
    b"\x80\x00\x00\x00",
    b"\xFF\xFF\xFF\xFF",
    b"\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    b"\x80\x00\x00\x00\x00\x00\x00\x00",
];

/// SplitMix64: the same cases for the same seed, on every machine.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64, group: u64) -> Self {
        Rng(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(group.wrapping_mul(0xA076_1D64_78BD_642F)))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.pick(all)
    }
}

pub struct Input {
    /// Three user partitions in their record form.
    pub keys: Vec<Vec<u8>>,
}

impl Input {
    pub fn new() -> Self {
        let key = |name: &[u8], id: u8, partition: i32| {
            let mut key = vec![name.len() as u8 + 1];
            key.extend_from_slice(name);
            key.extend_from_slice(&[id; 16]);
            key.extend_from_slice(&partition.to_be_bytes());
            key
        };
        Input { keys: vec![key(b"orders", 1, 0), key(b"orders", 1, 7), key(b"", 0, i32::MIN)] }
    }
}

/// Returns a record value, sometimes damaged.
pub fn value(rng: &mut Rng, input: &Input) -> Vec<u8> {
    let is_start = rng.below(5) < 2;
    let mut out = vec![1, u8::from(!is_start), 0];
    let key = if rng.below(4) < 3 { &input.keys[0] } else { rng.pick(&input.keys) };
    out.extend_from_slice(key);
    out.push(0);
    out.extend_from_slice(&[rng.below(6) as u8; 16]);
    out.push(0);
    if is_start {
        start(rng, &mut out)
    } else {
        update(rng, &mut out)
    }
    if rng.below(8) == 0 { mutate(rng, &out, &[]) } else { out }
}

fn start(rng: &mut Rng, out: &mut Vec<u8>) {
    let begin = rng.below(20) as i64;
    let end = rng.one_of(&[begin, begin + 9, begin + 9, begin + 30, i64::MAX]);
    let number = rng.next();
    for offset in [begin, end] {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(&(rng.below(2) as i32).to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    let mut epochs: Vec<i32> =
        (0..1 + rng.below(3)).map(|_| rng.one_of(&[0, 0, 1, 2, -4, i32::MIN, i32::MAX])).collect();
    epochs.sort_unstable();
    epochs.dedup();
    out.push(epochs.len() as u8 + 1);
    for epoch in epochs {
        let first = rng.one_of(&[begin, begin, begin + 4, -1, i64::MIN, i64::MAX]);
        out.extend_from_slice(&epoch.to_be_bytes());
        out.extend_from_slice(&first.to_be_bytes());
        out.push(0);
    }
    out.extend_from_slice(&rng.one_of(&[1, 10, i32::MAX, i32::MIN]).to_be_bytes());
    custom(rng, out);
    out.extend_from_slice(rng.one_of(&[&[0_u8, 0][..], &[0, 1, 0, 1, 1]]));
}

fn update(rng: &mut Rng, out: &mut Vec<u8>) {
    out.extend_from_slice(&(rng.below(2) as i32).to_be_bytes());
    out.extend_from_slice(&(rng.below(2) as i64).to_be_bytes());
    custom(rng, out);
    out.extend_from_slice(&[rng.one_of(&[0, 1, 1, 1, 1, 2, 2, 3, 3]), 0]);
}

fn custom(rng: &mut Rng, out: &mut Vec<u8>) {
    let custom: &[u8] = rng.one_of(&[&[0][..], &[0], &[1], &[3, b'x', b'y']]);
    out.extend_from_slice(custom);
}

/// Returns a batch of records from `offset` on.
pub fn batch(rng: &mut Rng, offset: i64, values: &[Vec<u8>]) -> Vec<u8> {
    let attributes: u16 = rng.one_of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0x20, 0x30, 1, 6]);
    let mut out = Vec::new();
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&[0; 8]); // length, leader epoch
    out.push(2);
    out.extend_from_slice(&[0; 4]); // checksum
    out.extend_from_slice(&attributes.to_be_bytes());
    out.extend_from_slice(&(values.len().max(1) as i32 - 1).to_be_bytes());
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&[0xFF; 14]);
    out.extend_from_slice(&(values.len() as i32).to_be_bytes());
    for (number, value) in values.iter().enumerate() {
        let mut record = vec![0, 0];
        zigzag(&mut record, number as i64);
        zigzag(&mut record, -1);
        match rng.below(16) {
            0 => zigzag(&mut record, -1),
            _ => {
                zigzag(&mut record, value.len() as i64);
                record.extend_from_slice(value);
            }
        }
        zigzag(&mut record, 0);
        zigzag(&mut out, record.len() as i64);
        out.extend(record);
    }
    let length = (out.len() - LENGTH_FROM) as i32;
    out[LENGTH_AT..LENGTH_FROM].copy_from_slice(&length.to_be_bytes());
    seal(&mut out);
    out
}

fn zigzag(out: &mut Vec<u8>, number: i64) {
    put_varint(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Corrects the checksums, as far as batches can be told apart.
pub fn seal(data: &mut [u8]) {
    let mut start = 0;
    while start + HEADER_BYTES <= data.len() && data[start + MAGIC_AT] == 2 {
        let length: [u8; 4] = data[start + LENGTH_AT..start + LENGTH_FROM].try_into().expect("four bytes");
        let Ok(length) = usize::try_from(i32::from_be_bytes(length)) else { return };
        let stop = start + LENGTH_FROM + length;
        if stop < start + CRC_FROM || stop > data.len() {
            return;
        }
        let checksum = crc32c::crc32c(&data[start + CRC_FROM..stop]);
        data[start + MAGIC_AT + 1..start + CRC_FROM].copy_from_slice(&checksum.to_be_bytes());
        start = stop;
    }
}

/// Returns `data` after one to four changes; splices take from `others`.
pub fn mutate(rng: &mut Rng, data: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut out = data.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(out.len() + 1);
        let piece = (at + 1 + rng.below(24)).min(out.len());
        match rng.below(10) {
            0..=2 if at < out.len() => out[at] ^= 1 << rng.below(8),
            3 if at < out.len() => out[at] = rng.one_of(&[0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]),
            4 => out.truncate(at),
            5 => drop(out.drain(at..piece)),
            6 => {
                let repeated = out[at..piece].repeat(1 + rng.below(3));
                out.splice(at..at, repeated);
            }
            7 => drop(out.splice(at..piece.min(at + 1), rng.one_of(&EXTREMES).iter().copied())),
            8 => {
                let extreme = rng.one_of(&EXTREMES);
                let stop = (at + extreme.len()).min(out.len());
                out.splice(at..stop, extreme.iter().copied());
            }
            9 if !others.is_empty() => {
                let other = rng.pick(others);
                let from = rng.below(other.len() + 1);
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
            _ => (),
        }
    }
    out
}
