//! Reading of big-endian numbers and Kafka's varints from bytes that may end anywhere.

pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        if count > self.left() {
            return None;
        }
        let found = &self.bytes[self.at..self.at + count];
        self.at += count;
        Some(found)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        let found = &self.bytes[self.at..];
        self.at = self.bytes.len();
        found
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub fn uuid(&mut self) -> Option<[u8; 16]> {
        self.array()
    }

    /// Reads an unsigned varint in its shortest form, of at most `bytes_max` bytes.
    pub fn canonical_varint(&mut self, bytes_max: usize) -> Option<u64> {
        let mut total = 0_u64;
        for index in 0..bytes_max {
            let byte = self.u8()?;
            total |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                return (byte != 0 || index == 0).then_some(total);
            }
        }
        None
    }

    /// Reads a zigzag varint of at most nine bytes; a longer one is left to the other reader.
    pub fn zigzag(&mut self) -> Option<i64> {
        let mut total = 0_u64;
        for index in 0..9 {
            let byte = self.u8()?;
            total |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                return Some((total >> 1) as i64 ^ -((total & 1) as i64));
            }
        }
        None
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7F {
        out.push((number as u8 & 0x7F) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns whether the system would give so much memory now: asked before much is allocated, since
/// an allocation that fails ends the process.
pub fn has_room(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}
