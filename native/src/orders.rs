//! The orders of listings by page of one user partition, kept up while readers go through them.
//!
//! An order holds every listed segment that is not still ahead, once, and no other.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::row::{RowNo, Uuid};
use crate::row_store::RowStore;

/// Start offset and id.
pub type PageKey = (i64, Uuid);

/// Segments that are put in order by one call.
const TAKEN_AT_A_TIME: usize = 1_000;
/// Changes for which an order of few segments is kept up although no page is asked for.
const IDLE_CHANGES_MIN: usize = 1_000;

struct Order {
    /// `None`: the whole partition.
    epoch: Option<i32>,
    partition: u32,
    keys: BTreeSet<PageKey>,
    /// Rows that are not in order yet. Some may be gone, and their numbers be those of others.
    ahead: Vec<RowNo>,
    size_max: usize,
    idle_changes: usize,
}

impl Order {
    fn lists(&self, number: RowNo, rows: &RowStore, strays: &[i32]) -> bool {
        let row = rows.get(number);
        match self.epoch {
            None => true,
            Some(epoch) => strays.contains(&epoch) || row.range(rows.tail(number), epoch).is_some(),
        }
    }

    fn is_forgotten(&mut self) -> bool {
        self.idle_changes += 1;
        self.idle_changes > self.size_max + IDLE_CHANGES_MIN
    }
}

#[derive(Default)]
pub struct Orders(Vec<Order>);

impl Orders {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn begin(&mut self, epoch: Option<i32>, partition: u32, ahead: Vec<RowNo>) {
        self.drop_order(epoch);
        let size_max = ahead.len();
        self.0.push(Order { epoch, partition, keys: BTreeSet::new(), ahead, size_max, idle_changes: 0 });
    }

    pub fn has(&self, epoch: Option<i32>) -> bool {
        self.0.iter().any(|order| order.epoch == epoch)
    }

    pub fn drop_order(&mut self, epoch: Option<i32>) {
        self.0.retain(|order| order.epoch != epoch);
    }

    pub fn added(&mut self, number: RowNo, rows: &RowStore, strays: &[i32]) {
        let row = rows.get(number);
        self.0.retain_mut(|order| {
            if order.lists(number, rows, strays) {
                order.keys.insert((row.start, row.uuid));
            }
            !order.is_forgotten()
        });
    }

    /// To be called while the row is still what it was.
    pub fn removed(&mut self, number: RowNo, rows: &RowStore) {
        let row = rows.get(number);
        self.0.retain_mut(|order| {
            order.keys.remove(&(row.start, row.uuid));
            !order.is_forgotten()
        });
    }

    /// Returns the next rows behind `after`, one more than `limit` where there are more; `None`
    /// while the order is being made.
    pub fn page(
        &mut self,
        epoch: Option<i32>,
        after: Option<PageKey>,
        limit: usize,
        rows: &RowStore,
        strays_of: impl Fn(RowNo) -> Vec<i32>,
    ) -> Option<Vec<RowNo>> {
        let order = self.0.iter_mut().find(|order| order.epoch == epoch)?;
        order.idle_changes = 0;
        let left = order.ahead.len().saturating_sub(TAKEN_AT_A_TIME);
        for number in order.ahead.split_off(left) {
            let row = rows.get(number);
            let is_there = rows.find(order.partition, &row.uuid) == Some(number);
            if is_there && order.lists(number, rows, &strays_of(number)) {
                order.keys.insert((row.start, row.uuid));
            }
        }
        if !order.ahead.is_empty() {
            return None;
        }
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = order.keys.range((begin, Bound::Unbounded)).take(limit.saturating_add(1));
        Some(behind.filter_map(|(_, uuid)| rows.find(order.partition, uuid)).collect())
    }
}
