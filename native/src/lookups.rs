//! Look-ups by frame: from the bytes of a request to those of its answer.
//!
//! Python admits, and hands over what is open: per metadata partition the core, from which position
//! on, and until which moment of the event loop's clock; per reader the user partitions that it may
//! ask about. What was not handed over, or is over, is not answered here: Python answers it.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use hashbrown::{HashMap, HashTable};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::frame::{self, Question, Request};
use crate::partition::Partition;
use crate::row::RowNo;
use crate::row_lookups::{find_all, wait_for};
use crate::row_store::RowStore;
use crate::shard::Core;
use crate::shared::{Inner, Shared};

/// User partitions that a reader's table holds; one more empties it.
const ADMITTED_MAX: usize = 100_000;
/// Room for an answer that is kept for the next one.
const KEPT_BYTES: usize = 64 * 1024;

/// A metadata partition that is answered from.
struct Open {
    core: Arc<Shared>,
    position: i64,
    until_s: f64,
}

#[derive(Default)]
struct Opened {
    /// Changes when all that was handed over is taken back.
    generation: u64,
    /// Where a metadata partition stands in `open`.
    places: HashMap<u32, u32>,
    open: Vec<Open>,
}

/// The metadata partitions of one gate that are answered from.
#[pyclass(frozen, module = "rlmm_native")]
#[derive(Default)]
pub struct OpenShards {
    opened: Arc<Mutex<Opened>>,
}

/// A panic leaves these tables whole: no entry is made by half.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl OpenShards {
    /// Answers from `core` while its position is not below `position`, until the moment `until_s`.
    fn open(&self, place: u32, core: &Core, position: i64, until_s: f64) {
        let mut opened = held(&self.opened);
        core.stands_at(position);
        let open = Open { core: core.shared.clone(), position, until_s };
        match opened.places.get(&place).copied() {
            Some(at) => opened.open[at as usize] = open,
            None => {
                let at = opened.open.len() as u32;
                opened.places.insert(place, at);
                opened.open.push(open);
            }
        }
    }

    /// Says until when a metadata partition is answered from, where it is open.
    fn hold(&self, place: u32, until_s: f64) {
        let mut opened = held(&self.opened);
        if let Some(at) = opened.places.get(&place).copied() {
            opened.open[at as usize].until_s = until_s;
        }
    }

    /// Takes everything back, also from the readers.
    fn close(&self) {
        let mut opened = held(&self.opened);
        opened.generation += 1;
        opened.places.clear();
        opened.open.clear();
    }

    fn lookups(&self) -> FrameLookups {
        let opened = self.opened.clone();
        FrameLookups { opened, admitted: Mutex::new(Admitted::default()) }
    }
}

#[derive(Default)]
struct Admitted {
    generation: u64,
    hasher: RandomState,
    /// By hash: where the metadata partition stands, and the number of the user partition there.
    table: HashTable<(u64, u32, u32)>,
    questions: Vec<Question>,
    answer: Vec<u8>,
}

impl Admitted {
    fn hash_of(&self, id: &[u8], number: u32) -> u64 {
        self.hasher.hash_one((id, number))
    }
}

/// The look-ups of one reader, or of several with the same rights.
#[pyclass(frozen, module = "rlmm_native")]
pub struct FrameLookups {
    opened: Arc<Mutex<Opened>>,
    admitted: Mutex<Admitted>,
}

type Answer<'py> = (Bound<'py, PyBytes>, Bound<'py, PyString>, usize);

#[pymethods]
impl FrameLookups {
    /// The reader may ask about the user partition `key`, on an open metadata partition.
    fn admit(&self, place: u32, key: &[u8]) {
        let (mut admitted, opened) = (held(&self.admitted), held(&self.opened));
        if admitted.generation != opened.generation || admitted.table.len() >= ADMITTED_MAX {
            admitted.table.clear();
            admitted.generation = opened.generation;
        }
        let Some(&at) = opened.places.get(&place) else { return };
        let Some((front, number)) = key.split_last_chunk::<4>() else { return };
        let Some((_, id)) = front.split_last_chunk::<16>() else { return };
        let hash = admitted.hash_of(id, u32::from_be_bytes(*number));
        let Some(number) = opened.open[at as usize].core.locked().state.find(key) else { return };
        let entry = (hash, at, number);
        match admitted.table.find_mut(hash, |one| one.0 == hash) {
            Some(one) => *one = entry,
            None => {
                admitted.table.insert_unique(hash, entry, |one| one.0);
            }
        }
    }

    /// The reader may ask about nothing any more.
    fn forget(&self) {
        held(&self.admitted).table.clear();
    }

    /// Answers a frame at the moment `now_s`; returns the frame, its method, and how many look-ups
    /// it answers. `None`: Python answers it.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        now_s: f64,
        lookups_max: usize,
        bytes_max: usize,
    ) -> Option<Answer<'py>> {
        let mut admitted = held(&self.admitted);
        let opened = held(&self.opened);
        if admitted.generation != opened.generation {
            return None;
        }
        let Admitted { hasher, table, questions, answer, .. } = &mut *admitted;
        questions.clear();
        let request = frame::read(data, lookups_max, questions)?;
        frame::begin(request, questions.len(), answer);
        let find = |question: &Question| {
            let hash = hasher.hash_one((question.id(data), question.number));
            let &(_, at, number) = table.find(hash, |one| one.0 == hash)?;
            Some((at as usize, number))
        };
        if let [question] = questions.as_slice() {
            let (at, number) = find(question)?;
            let inner = opened.open[at].state(now_s)?;
            let partition = named(&inner, number, question, data)?;
            let rows = &inner.state.rows;
            let found = partition.epoch(question.epoch).and_then(|epoch| epoch.lookup(question.offset, rows));
            put(request, partition, found, rows, answer)?;
        } else {
            let places = questions.iter().map(find).collect::<Option<Vec<_>>>()?;
            put_all(request, questions, &places, data, &opened.open, now_s, answer)?;
        }
        frame::end(bytes_max, answer)?;
        let method = if request.is_batch { intern!(py, "segments_for") } else { intern!(py, "segment_for") };
        let found = PyBytes::new(py, answer);
        if answer.capacity() > KEPT_BYTES {
            *answer = Vec::new();
        }
        Some((found, method.clone(), questions.len()))
    }
}

impl Open {
    /// Returns the state, if it may be answered from at the moment `now_s`.
    fn state(&self, now_s: f64) -> Option<MutexGuard<'_, Inner>> {
        if now_s > self.until_s || now_s.is_nan() || self.until_s.is_nan() {
            return None;
        }
        // Python tells why there is none: a panic here would mark the other states that are held.
        let inner = self.core.sound()?;
        (inner.position >= self.position).then_some(inner)
    }
}

/// Returns the partition of that number, if it is the one that `question` names.
fn named<'a>(inner: &'a Inner, number: u32, question: &Question, data: &[u8]) -> Option<&'a Partition> {
    inner.state.at(number).filter(|partition| question.names(data, &partition.key))
}

/// Appends the answer to a look-up in `partition`; `None` where its deletion may be finished.
fn put(
    request: Request,
    partition: &Partition,
    found: Option<RowNo>,
    rows: &RowStore,
    answer: &mut Vec<u8>,
) -> Option<()> {
    if found.is_none() && partition.delete.is_some() {
        return None;
    }
    frame::put_answer(request, found.map(|number| (rows.get(number), rows.tail(number))), answer);
    Some(())
}

/// Appends the answers to many look-ups. One step is made for all before the next one: the memory
/// that different look-ups wait for is then fetched at once.
fn put_all(
    request: Request,
    questions: &[Question],
    places: &[(usize, u32)],
    data: &[u8],
    open: &[Open],
    now_s: f64,
    answer: &mut Vec<u8>,
) -> Option<()> {
    let mut inners: Vec<Option<MutexGuard<Inner>>> = open.iter().map(|_| None).collect();
    for &(at, _) in places {
        if inners[at].is_none() {
            inners[at] = Some(open[at].state(now_s)?);
        }
    }
    let numbered = |&(at, number): &(usize, u32)| inners[at].as_deref()?.state.at(number);
    wait_for(places.iter().filter_map(numbered).map(Partition::touch));
    let asked = questions.iter().zip(places);
    let partitions = asked.map(|(question, &(at, number))| {
        let inner = inners[at].as_deref()?;
        named(inner, number, question, data).map(|partition| (partition, &inner.state.rows))
    });
    let partitions = partitions.collect::<Option<Vec<_>>>()?;
    let epochs: Vec<_> =
        questions.iter().zip(&partitions).map(|(question, (partition, _))| partition.epoch(question.epoch)).collect();
    let asked: Vec<_> = questions
        .iter()
        .zip(&epochs)
        .zip(&partitions)
        .map(|((question, &epoch), &(_, rows))| (epoch, rows, question.offset))
        .collect();
    let found = find_all(&asked);
    for (found, (partition, rows)) in found.into_iter().zip(partitions) {
        put(request, partition, found, rows, answer)?;
    }
    Some(())
}
