//! Many state images, each behind its length, as the blocks of a snapshot hold them.

use crate::bytes::Reader;
use crate::image;
use crate::place::Place;
use crate::shared::Shared;

/// What was taken over of many images.
#[derive(Default)]
pub struct Taken {
    /// Where the first image begins that was not.
    pub stop: usize,
    pub count: usize,
    pub last_key: Vec<u8>,
    /// Keys of user partitions whose place is another metadata partition.
    pub misplaced: Vec<Vec<u8>>,
}

/// Takes over the images of `content` from `start` on: those that are whole, are what an engine
/// writes, and have rising keys behind `after`. Stops before the first other one, which is Python's
/// to judge. No reader waits longer than for one user partition.
pub fn take_over(content: &[u8], start: usize, after: &[u8], place: Option<Place>, shared: &Shared) -> Taken {
    let mut taken = Taken { stop: start, last_key: after.to_vec(), ..Taken::default() };
    let Some(content) = content.get(start..) else { return taken };
    let mut reader = Reader::new(content);
    while let Some(image) = next_image(&mut reader).and_then(image::read) {
        if image.key <= taken.last_key.as_slice() {
            break;
        }
        taken.last_key.clear();
        taken.last_key.extend_from_slice(image.key);
        if place.is_some_and(|place| !place.holds(image.key)) {
            taken.misplaced.push(image.key.to_vec());
        }
        image::take_over(image, &mut shared.locked().state);
        taken.count += 1;
        taken.stop = start + reader.at();
    }
    taken
}

fn next_image<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
    reader.take(usize::try_from(length).ok()?)
}
