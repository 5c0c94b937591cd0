//! The place of a user partition: Kafka's partitioner, as `rlmm/metadata/partitioner.py` has it.

const MURMUR_SEED: u32 = 0x9747_B28C;
const MURMUR_FACTOR: u32 = 0x5BD1_E995;
/// Topic id and partition, at the end of a key.
const PLACED_BYTES: usize = 20;

/// A metadata partition of a topic with `count` of them.
#[derive(Clone, Copy)]
pub struct Place {
    pub partition: u32,
    pub count: u32,
}

impl Place {
    /// Returns whether the user partition of `key` belongs here.
    pub fn holds(self, key: &[u8]) -> bool {
        let hash = key.last_chunk().map(hash_of);
        hash.and_then(|hash| hash.checked_rem(self.count)) == Some(self.partition)
    }
}

fn hash_of(placed: &[u8; PLACED_BYTES]) -> u32 {
    let word = |at: usize| placed[at..at + 4].iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
    // Java's `Objects.hash(low, high, partition)`, where a half folds to the XOR of its words.
    let java = [word(8) ^ word(12), word(0) ^ word(4), word(16)]
        .into_iter()
        .fold(1_u32, |total, part| total.wrapping_mul(31).wrapping_add(part));
    murmur2(java.swap_bytes()) & 0x7FFF_FFFF
}

/// Kafka's murmur2 of four bytes.
fn murmur2(mut block: u32) -> u32 {
    block = block.wrapping_mul(MURMUR_FACTOR);
    block ^= block >> 24;
    block = block.wrapping_mul(MURMUR_FACTOR);
    let mut mixed = (MURMUR_SEED ^ 4).wrapping_mul(MURMUR_FACTOR) ^ block;
    mixed ^= mixed >> 13;
    mixed = mixed.wrapping_mul(MURMUR_FACTOR);
    mixed ^ mixed >> 15
}
