//! Look-ups of rows by user partition, leader epoch and offset: one, or many in one call.
//!
//! Python objects are made when the lock is given back: making one may run other Python code.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::epoch::Epoch;
use crate::row::{Row, RowNo};
use crate::row_store::RowStore;
use crate::shard::{Pair, pair};
use crate::shared::Shared;
use crate::slots::Around;

/// A leader epoch where there is one, the rows it lists, and the offset that is looked up in it.
pub type Asked<'a> = (Option<&'a Epoch>, &'a RowStore, i64);

/// Looks up many offsets. One step is made for all before the next one: the memory that different
/// look-ups wait for is then fetched at once.
pub fn find_all(asked: &[Asked]) -> Vec<Option<RowNo>> {
    let around: Vec<_> = asked
        .iter()
        .map(|&(epoch, _, offset)| epoch.map_or_else(Around::default, |epoch| epoch.around(offset)))
        .collect();
    let with_around = || asked.iter().zip(&around);
    wait_for(with_around().map(|(&(_, _, offset), around)| around.touch(offset)));
    let slots: Vec<_> = with_around().map(|(&(_, _, offset), around)| around.floor(offset)).collect();
    let with_slots = || asked.iter().zip(&slots);
    wait_for(with_slots().map(|(&(_, rows, _), slot)| slot.map_or(0, |slot| rows.touch(slot.1))));
    with_slots().map(|(&(epoch, rows, offset), &slot)| epoch?.lookup_from(slot, offset, rows)).collect()
}

/// Reads memory that is needed next; none of the reads depends on another one.
pub fn wait_for(read: impl Iterator<Item = u64>) {
    std::hint::black_box(read.fold(0, |all, one| all ^ one));
}

/// A copy of a row and of its tail.
pub type Copied = (Row, Box<[u8]>);

#[inline]
pub fn copy_of(rows: &RowStore, number: RowNo) -> Copied {
    (rows.get(number).clone(), rows.tail(number).into())
}

/// Returns the key of a user partition.
#[inline]
fn key_of<'py>(user: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(user.getattr(intern!(user.py(), "key"))?.cast_into()?)
}

pub fn row_for<'py>(shared: &Shared, user: &Bound<'py, PyAny>, epoch: i32, offset: i64) -> PyResult<Option<Pair<'py>>> {
    let key = key_of(user)?;
    let found = {
        let inner = shared.locked();
        let rows = &inner.state.rows;
        let epoch = inner.state.get(key.as_bytes()).and_then(|partition| partition.epoch(epoch));
        epoch.and_then(|epoch| epoch.lookup(offset, rows)).map(|number| copy_of(rows, number))
    };
    Ok(found.map(|(row, tail)| pair(user.py(), &row, &tail)))
}

pub fn rows_for<'py>(shared: &Shared, asked: &Bound<'py, PyAny>) -> PyResult<Vec<Option<Pair<'py>>>> {
    let py = asked.py();
    let mut keys = Vec::new();
    for one in asked.try_iter()? {
        let (user, epoch, offset): (Bound<'py, PyAny>, i32, i64) = one?.extract()?;
        keys.push((key_of(&user)?, epoch, offset));
    }
    let found: Vec<Option<Copied>> = {
        let inner = shared.locked();
        let (state, rows) = (&inner.state, &inner.state.rows);
        let numbers: Vec<_> = keys.iter().map(|(key, ..)| state.find(key.as_bytes())).collect();
        let partitions: Vec<_> = numbers.into_iter().map(|number| state.at(number?)).collect();
        wait_for(partitions.iter().flatten().map(|partition| partition.touch()));
        let asked: Vec<Asked> = keys
            .iter()
            .zip(partitions)
            .map(|(&(_, epoch, offset), partition)| (partition.and_then(|one| one.epoch(epoch)), rows, offset))
            .collect();
        find_all(&asked).into_iter().map(|number| Some(copy_of(rows, number?))).collect()
    };
    Ok(found.into_iter().map(|found| found.map(|(row, tail)| pair(py, &row, &tail))).collect())
}
