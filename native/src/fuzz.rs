//! Damaged record sets and state images, fed to the core alone: no panic, and every rule kept.
//!
//! `FUZZ_COUNT` and `FUZZ_SEED` choose how many cases and which. `make fuzz-native` runs it under
//! the address sanitizer, and with every overflow checked. That both engines say the same is
//! `make fuzz`'s affair.

use std::time::Instant;

use crate::apply::{Counts, Slice, Stop, Walk};
use crate::batch::HEADER_BYTES;
use crate::fuzz_input::{Input, Rng, batch, mutate, value};
use crate::image;
use crate::partition::Delete;
use crate::row::{DELETE_STARTED, FINISHED};
use crate::shared::{Shared, Turn};
use crate::state::State;

const CASES_PER_STATE: usize = 64;
/// How often one record set is gone on with behind something that stopped the core.
const TURNS_MAX: usize = 40;
const EPOCHS: [i32; 6] = [i32::MIN, -4, 0, 1, 2, i32::MAX];
const OFFSETS: [i64; 10] = [i64::MIN, -1, 0, 1, 5, 9, 10, 19, i64::MAX - 1, i64::MAX];

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What happened, so that a run which reaches nothing is noticed.
#[derive(Debug, Default)]
struct Reached {
    cases: u64,
    applied: u64,
    entries: u64,
    batches: u64,
    values: u64,
    limits: u64,
    images: u64,
    images_refused: u64,
}

struct Fuzzed {
    rng: Rng,
    shared: Shared,
    position: i64,
    reached: Reached,
}

impl Fuzzed {
    /// Applies a record set; where the core stops, goes on as Python's engine would have done.
    fn apply(&mut self, data: &[u8]) {
        let mut walk = Walk::new(0, 0);
        let limit = self.rng.one_of(&[None, None, Some(self.position + 3), Some(i64::MAX)]);
        for _ in 0..TURNS_MAX {
            let events = self.rng.one_of(&[None, None, Some(1), Some(3)]);
            let mut slice = Slice {
                data,
                position: self.position,
                limit,
                events_left: events.unwrap_or(u64::MAX),
                is_limited: events.is_some(),
                until: Instant::now() + std::time::Duration::from_secs(1),
                holes_are_damage: self.rng.below(4) == 0,
                keeps_passed: self.rng.below(2) == 0,
                counts: Counts::default(),
                entries: Vec::new(),
                passed: Vec::new(),
            };
            let stop = slice.apply(&mut walk, &mut Turn::new(&self.shared));
            assert!(slice.position >= self.position, "the position goes back");
            let Counts { applied, control, missing, redelivered: _ } = slice.counts;
            let counted = applied + control + missing + slice.entries.len() as u64;
            assert_eq!(counted, slice.position.abs_diff(self.position), "offsets are not counted once");
            self.position = slice.position;
            self.reached.applied += applied;
            self.reached.entries += slice.entries.len() as u64;
            match stop {
                Stop::End => return,
                Stop::Limit | Stop::Steps => self.reached.limits += 1,
                Stop::Batch => {
                    self.reached.batches += 1;
                    let at = walk.at + self.rng.one_of(&[0, 1, HEADER_BYTES, 80]);
                    walk = Walk::new(at, self.rng.one_of(&[0, walk.floor]));
                }
                Stop::Value => {
                    self.reached.values += 1;
                    let (offset, _) = Slice::stopped_at(&walk, data).expect("a record stopped it");
                    self.position = offset + 1;
                    Slice::pass_value(&mut walk, data);
                }
            }
        }
    }

    fn change_otherwise(&mut self, input: &Input) {
        let key = self.rng.pick(&input.keys).clone();
        if self.rng.below(32) == 0 {
            let state = self.rng.below(3) as u8;
            self.shared
                .locked()
                .state
                .put_delete(&key, Delete { state, broker: 1, timestamp: self.rng.below(2) as i64 });
        }
        if self.rng.below(4) == 0 {
            self.shared.locked().state.ensure(&key);
        }
    }

    fn ask(&mut self, input: &Input) {
        let key = self.rng.pick(&input.keys).clone();
        let state = &mut self.shared.locked().state;
        let Some(number) = state.find(&key) else { return };
        let Some((partition, rows)) = state.partition_and_rows(number) else { return };
        for epoch in EPOCHS {
            let Some(entry) = partition.epoch_mut(epoch) else { continue };
            for offset in OFFSETS {
                if let Some(found) = entry.lookup(offset, rows) {
                    let (first, last) = rows.get(found).range(rows.tail(found), epoch).expect("it lists the epoch");
                    assert!(rows.get(found).state == FINISHED && first <= offset && offset <= last);
                }
                entry.next_with_txn_index(offset.max(0), rows);
            }
        }
        let mut orders = partition.orders.take().unwrap_or_default();
        let epoch = self.rng.one_of(&[None, Some(0), Some(1)]);
        if !orders.has(epoch) {
            orders.begin(epoch, number, partition.rows(rows).collect());
        }
        let found = orders.page(epoch, None, 3, rows, |row| partition.strays_of(row)).unwrap_or_default();
        assert!(found.iter().all(|&row| rows.get(row).state <= DELETE_STARTED));
        partition.orders = Some(orders);
    }

    fn images(&self) -> Vec<Vec<u8>> {
        let state = &self.shared.locked().state;
        state.keys().into_iter().map(|key| image_of(state, key)).collect()
    }

    fn check(&mut self) {
        assert_eq!(self.shared.locked().state.violations(), []);
        let images = self.images();
        for image in &images {
            let mut other = State::new();
            let read = image::read(image).expect("an image of ours");
            let key = read.key.to_vec();
            image::take_over(read, &mut other);
            assert_eq!(other.violations(), []);
            assert!(image_of(&other, &key) == *image, "the image reads back as another state");
        }
        if let Some(image) = (!images.is_empty()).then(|| self.rng.pick(&images).clone()) {
            let damaged = mutate(&mut self.rng, &image, &images);
            self.take_image(&damaged);
        }
    }

    fn take_image(&mut self, damaged: &[u8]) {
        self.reached.cases += 1;
        let Some(read) = image::read(damaged) else {
            self.reached.images_refused += 1;
            return;
        };
        self.reached.images += 1;
        let key = read.key.to_vec();
        let state = &mut self.shared.locked().state;
        image::take_over(read, state);
        assert!(image_of(state, &key) == damaged, "an image is taken that no engine writes");
        assert_eq!(state.violations(), []);
    }
}

fn image_of(state: &State, key: &[u8]) -> Vec<u8> {
    let mut frozen = state.frozen(key).expect("there is memory").expect("it is known");
    if let Some(partition) = state.get(key) {
        while !frozen.go_on(partition, &state.rows, &mut 3) {} // in small steps
    }
    frozen.image().expect("there is memory")
}

fn case(fuzzed: &mut Fuzzed, input: &Input) {
    let rng = &mut fuzzed.rng;
    let mut sets = Vec::new();
    for _ in 0..2 {
        let mut offset = (fuzzed.position - rng.one_of(&[0, 0, 0, 5])).max(0);
        let mut set = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let values: Vec<Vec<u8>> = (0..rng.below(6)).map(|_| value(rng, input)).collect();
            set.extend(batch(rng, offset, &values));
            offset += values.len() as i64 + rng.one_of(&[0, 0, 2]);
        }
        sets.push(set);
    }
    let data = match rng.below(8) {
        0..4 => sets[0].clone(),
        4 => mutate(rng, &sets[0], &sets),
        _ => {
            let mut damaged = mutate(rng, &sets[0], &sets);
            crate::fuzz_input::seal(&mut damaged);
            damaged
        }
    };
    fuzzed.reached.cases += 1;
    fuzzed.apply(&data);
    fuzzed.change_otherwise(input);
}

/// Runs `count` cases, a few on each state.
fn run(seed: u64, count: u64) -> Reached {
    let input = Input::new();
    let mut total = Reached::default();
    let mut group = 0;
    while total.cases < count {
        group += 1;
        let mut fuzzed =
            Fuzzed { rng: Rng::new(seed, group), shared: Shared::new(State::new()), position: 0, reached: total };
        for key in &input.keys {
            fuzzed.shared.locked().state.ensure(key);
        }
        for number in 0..CASES_PER_STATE {
            case(&mut fuzzed, &input);
            if number % 8 == 0 {
                fuzzed.ask(&input);
                fuzzed.check();
            }
            if fuzzed.position > i64::MAX / 2 {
                break;
            }
        }
        fuzzed.check();
        total = fuzzed.reached;
    }
    total
}

#[test]
fn damaged_bytes_break_nothing() {
    let (seed, count) = (setting("FUZZ_SEED", 1), setting("FUZZ_COUNT", 20_000));
    let reached = run(seed, count);
    println!("seed {seed}: {reached:?}");
    let Reached { cases: _, applied, entries, batches, values, limits, images, images_refused } = reached;
    for one in [applied, entries, batches, values, limits, images, images_refused] {
        assert!(one > 0, "the cases do not reach everything");
    }
    assert!(applied > count / 4);
}
