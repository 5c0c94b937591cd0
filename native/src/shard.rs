//! The core as Python sees it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::apply::{Counts, Slice, Stop, Walk};
use crate::bytes::Reader;
use crate::image;
use crate::listing::{FrozenShard, Listed, RowListing};
use crate::lock::{caught, usable};
use crate::lookups::OpenShards;
use crate::many_images;
use crate::partition::{Delete, Partition, Update};
use crate::place::Place;
use crate::row::{Row, RowNo, Uuid, read_row};
use crate::row_lookups::{self, copy_of};
use crate::row_store::RowStore;
use crate::shared::{Inner, Shared, Turn};
use crate::state::State;
use crate::verdict::Verdict;

pub type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Returns id and row, as Python's engine holds them.
#[inline]
pub fn pair<'py>(py: Python<'py>, row: &Row, tail: &[u8]) -> Pair<'py> {
    let uuid = PyBytes::new(py, &row.uuid);
    if !row.has_tail() {
        return (uuid, PyBytes::new(py, &row.plain()));
    }
    let mut bytes = Vec::with_capacity(row.written_len(tail));
    row.write(tail, &mut bytes);
    (uuid, PyBytes::new(py, &bytes))
}

fn uuid_of(bytes: &[u8]) -> PyResult<Uuid> {
    bytes.try_into().map_err(|_| PyValueError::new_err("a uuid has 16 bytes"))
}

/// One metadata partition.
#[pyclass(frozen, module = "rlmm_native", name = "Core")]
pub struct Core {
    pub shared: Arc<Shared>,
    /// How far the record set is read; locked while a slice is applied.
    walk: Mutex<Walk>,
}

impl Core {
    /// The shard has read everything below `position`.
    pub fn stands_at(&self, position: i64) {
        let mut inner = self.inner();
        inner.position = inner.position.max(position);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.locked()
    }

    fn walk(&self) -> MutexGuard<'_, Walk> {
        usable(self.walk.lock())
    }

    fn of<T>(&self, key: &[u8], ask: impl FnOnce(&Partition, &RowStore) -> T) -> Option<T> {
        let inner = self.inner();
        inner.state.get(key).map(|partition| ask(partition, &inner.state.rows))
    }

    fn of_epoch<T>(&self, key: &[u8], epoch: i32, ask: impl FnOnce(&crate::epoch::Epoch, &RowStore) -> T) -> Option<T> {
        self.of(key, |partition, rows| partition.epoch(epoch).map(|entry| ask(entry, rows))).flatten()
    }

    fn shown<'py>(&self, py: Python<'py>, inner: &Inner, number: RowNo) -> Pair<'py> {
        pair(py, inner.state.rows.get(number), inner.state.rows.tail(number))
    }
}

#[pymethods]
impl Core {
    #[new]
    fn new() -> Self {
        Core { shared: Arc::new(Shared::new(State::new())), walk: Mutex::new(Walk::new(0, 0)) }
    }

    /// Begins to read a record set, at byte `at`; no batch may begin below offset `floor`.
    fn begin(&self, at: usize, floor: i64) {
        *self.walk() = Walk::new(at, floor);
    }

    /// Applies some of `data`; `rlmm.metadata.native_shard` explains the answer.
    #[expect(clippy::too_many_arguments, reason = "one call for each slice")]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        position: i64,
        limit: Option<i64>,
        events_max: Option<u64>,
        budget_ns: u64,
        holes_are_damage: bool,
        keeps_passed: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let bytes = data.as_bytes();
        let mut slice = Slice {
            data: bytes,
            position,
            limit,
            events_left: events_max.unwrap_or(u64::MAX),
            is_limited: events_max.is_some(),
            until: Instant::now() + Duration::from_nanos(budget_ns),
            holes_are_damage,
            keeps_passed,
            counts: Counts::default(),
            entries: Vec::new(),
            passed: Vec::new(),
        };
        let work = || {
            let mut walk = self.walk();
            let stop = slice.apply(&mut walk, &mut Turn::new(&self.shared));
            self.inner().position = slice.position;
            let last = walk.last.map(|last| last.start);
            let timestamp = walk.closed.then_some(walk.timestamp);
            let stopped = (stop == Stop::Value).then(|| Slice::stopped_at(&walk, bytes)).flatten();
            (stop, (walk.at, walk.floor, last, timestamp), stopped)
        };
        let (stop, place, stopped) = py.detach(|| caught(work)).map_err(PyRuntimeError::new_err)?;
        let cut = |range: &std::ops::Range<usize>| PyBytes::new(py, &bytes[range.clone()]);
        let entries = PyList::new(py, slice.entries.iter().map(|one| (one.offset, one.verdict, cut(&one.value))))?;
        let passed = PyList::new(py, slice.passed.iter().map(|(offset, value)| (*offset, value.as_ref().map(cut))))?;
        let stopped = stopped.map(|(offset, value)| (offset, value.as_ref().map(cut)));
        let counts = &slice.counts;
        let counts = (counts.applied, counts.control, counts.missing, counts.redelivered);
        (stop as u8, slice.position, place, counts, entries, passed, stopped).into_pyobject(py)
    }

    /// Steps over the value that stopped `apply`.
    fn pass_value(&self, data: &[u8]) {
        Slice::pass_value(&mut self.walk(), data);
    }

    /// Returns whether the core knows `key` beyond a deletion that is finished.
    fn has(&self, key: &[u8]) -> bool {
        self.inner().state.find(key).is_some()
    }

    fn knows(&self, key: &[u8]) -> bool {
        let inner = self.inner();
        inner.state.find(key).is_some() || inner.state.ended(key).is_some()
    }

    fn count(&self) -> usize {
        self.inner().state.count()
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        // Python objects are made without the lock: making one may run other Python code.
        let keys: Vec<Box<[u8]>> = self.inner().state.keys().into_iter().map(Box::from).collect();
        PyList::new(py, keys.iter().map(|key| PyBytes::new(py, key)))
    }

    fn add(&self, key: &[u8], uuid: &[u8], row: &[u8]) -> PyResult<Verdict> {
        let mut new = read_row(uuid_of(uuid)?, 0, row).ok_or_else(|| PyValueError::new_err("not a row"))?;
        let mut inner = self.inner();
        let number = inner.state.ensure(key);
        new.row.partition = number;
        let Some((partition, rows)) = inner.state.partition_and_rows(number) else {
            return Err(PyValueError::new_err("no such partition"));
        };
        Ok(partition.add(new, rows))
    }

    /// Applies an update; `writer` and `custom` are as in a record.
    fn update(
        &self,
        key: &[u8],
        uuid: &[u8],
        target: u8,
        writer: &[u8],
        custom: &[u8],
        offset: i64,
    ) -> PyResult<Option<Verdict>> {
        let uuid = uuid_of(uuid)?;
        let update = update_of(target, writer, custom).ok_or_else(|| PyValueError::new_err("not an update"))?;
        let mut inner = self.inner();
        let Some(number) = inner.state.find(key) else { return Ok(None) };
        let found = inner.state.partition_and_rows(number);
        Ok(found.map(|(partition, rows)| partition.update(&uuid, &update, offset, rows)))
    }

    fn put_delete(&self, key: &[u8], state: u8, broker: i32, timestamp: i64) -> Verdict {
        self.inner().state.put_delete(key, Delete { state, broker, timestamp })
    }

    fn row<'py>(&self, py: Python<'py>, key: &[u8], uuid: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let uuid = uuid_of(uuid)?;
        let inner = self.inner();
        let found = inner.state.find(key).and_then(|number| inner.state.rows.find(number, &uuid));
        Ok(found.map(|number| self.shown(py, &inner, number).1))
    }

    /// Looks up in a user partition, which is an object with a `key`.
    fn row_for<'py>(&self, user: &Bound<'py, PyAny>, epoch: i32, offset: i64) -> PyResult<Option<Pair<'py>>> {
        row_lookups::row_for(&self.shared, user, epoch, offset)
    }

    /// Looks up all of `asked`, tuples of user partition, leader epoch and offset.
    fn rows_for<'py>(&self, asked: &Bound<'py, PyAny>) -> PyResult<Vec<Option<Pair<'py>>>> {
        row_lookups::rows_for(&self.shared, asked)
    }

    fn next_with_txn_index<'py>(&self, py: Python<'py>, key: &[u8], epoch: i32, offset: i64) -> Option<Pair<'py>> {
        let mut inner = self.inner();
        let partition = inner.state.find(key)?;
        let (partition, rows) = inner.state.partition_and_rows(partition)?;
        let number = partition.epoch_mut(epoch)?.next_with_txn_index(offset, rows)?;
        Some(self.shown(py, &inner, number))
    }

    fn highest(&self, key: &[u8], epoch: i32) -> Option<i64> {
        self.of_epoch(key, epoch, |entry, _| entry.highest).flatten()
    }

    fn size(&self, key: &[u8]) -> i64 {
        self.of(key, |partition, _| partition.size_bytes).unwrap_or(0)
    }

    fn size_of_epoch(&self, key: &[u8], epoch: i32) -> i64 {
        self.of_epoch(key, epoch, |entry, _| entry.size_bytes).unwrap_or(0)
    }

    fn counts(&self, key: &[u8]) -> (u32, u32, u32) {
        self.of(key, |partition, _| partition.counts.into()).unwrap_or_default()
    }

    /// Returns state, broker and timestamp of the last deletion event.
    fn delete(&self, key: &[u8]) -> Option<(u8, i32, i64)> {
        let inner = self.inner();
        let found = inner.state.get(key).and_then(|partition| partition.delete);
        found.or_else(|| inner.state.ended(key)).map(|delete| (delete.state, delete.broker, delete.timestamp))
    }

    /// Returns slots, other ids and the watermark of one leader epoch.
    #[expect(clippy::type_complexity, reason = "three answers")]
    fn epoch_view<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        epoch: i32,
    ) -> Option<(Vec<(i64, Bound<'py, PyBytes>)>, Vec<Bound<'py, PyBytes>>, Option<i64>)> {
        self.of_epoch(key, epoch, |entry, rows| {
            let id = |number: RowNo| PyBytes::new(py, &rows.get(number).uuid);
            let slots = entry.slots.iter().map(|(offset, number)| (offset, id(number))).collect();
            (slots, entry.unreferenced.iter().map(id).collect(), entry.highest)
        })
    }

    fn open_shards(&self) -> OpenShards {
        OpenShards::default()
    }

    fn listing(&self, py: Python<'_>, key: &[u8], epoch: Option<i32>) -> RowListing {
        py.detach(|| {
            RowListing::new(self.of(key, |partition, rows| listed(partition, rows, epoch)).unwrap_or_default())
        })
    }

    /// Returns whether there is anything to list.
    fn lists(&self, key: &[u8], epoch: Option<i32>) -> bool {
        let ask = |partition: &Partition, _: &RowStore| match epoch {
            None => partition.row_count() > 0,
            Some(epoch) => partition.row_count() > 0 && partition.epoch(epoch).is_some(),
        };
        self.of(key, ask).unwrap_or(false)
    }

    fn order_begin(&self, key: &[u8], epoch: Option<i32>) -> bool {
        let mut inner = self.inner();
        let Some(number) = inner.state.find(key) else { return false };
        let Some((partition, rows)) = inner.state.partition_and_rows(number) else { return false };
        let ahead = match epoch {
            None => partition.rows(rows).collect(),
            Some(epoch) => match partition.epoch(epoch) {
                Some(entry) => entry.listed().collect(),
                None => return false,
            },
        };
        let number = partition.number;
        partition.orders.get_or_insert_default().begin(epoch, number, ahead);
        true
    }

    fn order_is_kept(&self, key: &[u8], epoch: Option<i32>) -> bool {
        self.of(key, |partition, _| partition.orders.as_ref().is_some_and(|orders| orders.has(epoch))).unwrap_or(false)
    }

    fn order_drop(&self, key: &[u8], epoch: Option<i32>) {
        let mut inner = self.inner();
        let Some(number) = inner.state.find(key) else { return };
        let Some((partition, _)) = inner.state.partition_and_rows(number) else { return };
        if let Some(orders) = &mut partition.orders {
            orders.drop_order(epoch);
            if orders.is_empty() {
                partition.orders = None;
            }
        }
    }

    /// Returns the rows behind `after`, one more than `limit` where there are more; `None` while
    /// the order is being made.
    fn page<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        epoch: Option<i32>,
        after: Option<(i64, [u8; 16])>,
        limit: usize,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut inner = self.inner();
        let Some(number) = inner.state.find(key) else { return Ok(None) };
        let Some((partition, rows)) = inner.state.partition_and_rows(number) else { return Ok(None) };
        let Some(mut orders) = partition.orders.take() else { return Ok(None) };
        let found = orders.page(epoch, after, limit, rows, |number| partition.strays_of(number));
        partition.orders = Some(orders);
        let Some(found) = found else { return Ok(None) };
        let copies: Vec<_> = found.into_iter().map(|number| copy_of(&inner.state.rows, number)).collect();
        drop(inner);
        PyList::new(py, copies.iter().map(|(row, tail)| pair(py, row, tail)).collect::<Vec<_>>()).map(Some)
    }

    /// Begins to copy the user partition of `key`, or all; `None` where it is not known.
    #[pyo3(signature = (key=None))]
    fn freeze(&self, key: Option<&[u8]>) -> PyResult<Option<FrozenShard>> {
        let shared = self.shared.clone();
        let Some(key) = key else { return Ok(Some(FrozenShard::of_all(shared))) };
        let frozen = self.inner().state.frozen(key)?;
        Ok(frozen.map(|frozen| FrozenShard::of_one(shared, frozen)))
    }

    /// Takes over the images of `content` from `start` on, each behind its length, until one is not
    /// whole, not usual, or has no key behind `after`. Returns where that one begins, how many were
    /// taken over, the last key, and the keys that are misplaced among `partition_count`.
    #[expect(clippy::type_complexity, reason = "four answers")]
    fn import_images<'py>(
        &self,
        py: Python<'py>,
        content: &Bound<'py, PyBytes>,
        start: usize,
        after: &[u8],
        partition: u32,
        partition_count: Option<u32>,
    ) -> PyResult<(usize, usize, Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
        let bytes = content.as_bytes();
        let place = partition_count.map(|count| Place { partition, count });
        let work = || many_images::take_over(bytes, start, after, place, &self.shared);
        let taken = py.detach(|| caught(work)).map_err(PyRuntimeError::new_err)?;
        let misplaced = taken.misplaced.iter().map(|key| PyBytes::new(py, key)).collect();
        Ok((taken.stop, taken.count, PyBytes::new(py, &taken.last_key), misplaced))
    }

    /// Replaces one user partition by its image; returns its key, or `None` for an image that no
    /// engine writes.
    fn import_partition<'py>(
        &self,
        py: Python<'py>,
        image: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = image.as_bytes();
        let key = py.detach(|| {
            let Some(read) = image::read(bytes) else { return Ok(None) };
            let key = read.key;
            caught(|| image::take_over(read, &mut self.inner().state)).map(|()| Some(key))
        });
        Ok(key.map_err(PyRuntimeError::new_err)?.map(|key| PyBytes::new(py, key)))
    }

    /// Returns key, leader epoch and watermark, where any copy was ever finished.
    fn watermarks<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, i32, i64)> {
        let inner = self.inner();
        let mut found = Vec::new();
        for partition in inner.state.partitions() {
            for entry in partition.epochs.iter() {
                if let Some(highest) = entry.highest {
                    found.push((PyBytes::new(py, &partition.key), entry.epoch, highest));
                }
            }
        }
        found
    }

    /// Returns how many segments there are by state, their bytes, and the oldest time of an open one.
    fn totals(&self, py: Python<'_>) -> ((u64, u64, u64), i64, Option<i64>) {
        py.detach(|| {
            let inner = self.inner();
            let totals = inner.state.rows.totals;
            (totals.counts.into(), totals.size_bytes, inner.state.open_rows().map(|row| row.event_timestamp).min())
        })
    }

    /// Returns each derived part that is not what it should be: the fault, and the key of the user
    /// partition, unless it is one of all.
    fn violations<'py>(&self, py: Python<'py>) -> Vec<(Option<Bound<'py, PyBytes>>, String)> {
        let found = self.inner().state.violations();
        found.into_iter().map(|(key, fault)| (key.map(|key| PyBytes::new(py, &key)), fault)).collect()
    }

    /// Forgets everything.
    fn clear(&self) {
        let mut inner = self.inner();
        inner.position = i64::MIN;
        std::mem::replace(&mut inner.state, State::new()).free_aside();
    }

    /// Returns the heap bytes that the state holds, but for custom metadata and further epochs.
    fn held_bytes(&self) -> usize {
        self.inner().state.held_bytes()
    }
}

fn update_of<'a>(target: u8, writer: &[u8], custom: &'a [u8]) -> Option<Update<'a>> {
    let mut reader = Reader::new(writer);
    let (broker, timestamp) = (reader.i32()?, reader.i64()?);
    let mut reader = Reader::new(custom);
    let size = usize::try_from(reader.canonical_varint(5)?).ok()?;
    let custom = match size {
        0 => None,
        _ => Some(reader.take(size - 1)?),
    };
    (target <= 3).then_some(Update { target, broker, timestamp, custom })
}

/// Returns the rows of a user partition with what they are sorted by: by start offset and id, or by
/// Kafka's order of one leader epoch.
fn listed(partition: &Partition, rows: &RowStore, epoch: Option<i32>) -> Vec<Listed> {
    let shown = |key, number| {
        let tail = rows.tail(number).into();
        (key, rows.get(number).clone(), tail)
    };
    let Some(epoch) = epoch else {
        let key = |number: RowNo| (rows.get(number).start, 0, 0, rows.get(number).uuid);
        return partition.rows(rows).map(|number| shown(key(number), number)).collect();
    };
    let Some(entry) = partition.epoch(epoch) else { return Vec::new() };
    let by_start = !entry.unreferenced.is_empty();
    let slots = entry.slots.iter().enumerate().map(|(rank, (_, number))| {
        let start = if by_start { rows.get(number).start } else { 0 };
        shown((start, 0, rank as u64, [0; 16]), number)
    });
    let others = entry.unreferenced.iter().map(|number| {
        let row = rows.get(number);
        shown((row.start, 1, 0, row.uuid), number)
    });
    slots.chain(others).collect()
}
