//! The state of one core behind its lock.
//!
//! `std::sync::Mutex` is unfair: a thread that unlocks and locks again gets it before a reader that
//! waits. So a reader that cannot have the lock at once announces itself, and what applies a record
//! set gives the lock away at the edge of a record, where no record is applied by half.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::lock::{UNUSABLE, usable};
use crate::state::State;

/// How often other threads are let go first, before the lock is asked for again: readers without
/// end must not stop the work.
const YIELDS_MAX: u32 = 100;

pub struct Inner {
    pub state: State,
    /// The next offset, as far as the core was told; no offset of a state that is given up.
    pub position: i64,
}

pub struct Shared {
    inner: Mutex<Inner>,
    /// Readers that wait for the lock.
    waiting: AtomicUsize,
}

impl Shared {
    pub fn new(state: State) -> Self {
        Shared { inner: Mutex::new(Inner { state, position: 0 }), waiting: AtomicUsize::new(0) }
    }

    /// Panics where a panic has left the state half changed.
    pub fn locked(&self) -> MutexGuard<'_, Inner> {
        self.sound().unwrap_or_else(|| panic!("{UNUSABLE}"))
    }

    /// Returns the state; `None` where a panic has left it half changed.
    pub fn sound(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(found) => Some(found),
            Err(TryLockError::Poisoned(_)) => None,
            Err(TryLockError::WouldBlock) => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let found = self.inner.lock().ok();
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                found
            }
        }
    }

    fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(inner) = self.inner.get_mut() {
            std::mem::replace(&mut inner.state, State::new()).free_aside();
        }
    }
}

/// The lock in the hands of what applies a record set: held from record to record.
pub struct Turn<'a> {
    shared: &'a Shared,
    held: Option<MutexGuard<'a, Inner>>,
}

impl<'a> Turn<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Turn { shared, held: None }
    }

    /// Returns the state, to change it by one record.
    #[inline]
    pub fn state(&mut self) -> &mut State {
        let shared = self.shared;
        &mut self.held.get_or_insert_with(|| usable(shared.inner.lock())).state
    }

    /// Lets readers have the lock while nothing is changed.
    #[inline]
    pub fn let_go(&mut self) {
        self.held = None;
    }

    /// Lets the readers that wait have the lock; to be called between two records.
    #[inline]
    pub fn give_way(&mut self) {
        if self.shared.is_awaited() {
            self.held = None;
            let mut yields = 0;
            while self.shared.is_awaited() && yields < YIELDS_MAX {
                std::thread::yield_now();
                yields += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::caught;

    #[test]
    fn state_is_given_up_when_code_panics_under_its_lock() {
        let shared = Shared::new(State::new());
        let work = |number: usize| caught(|| [0][Turn::new(&shared).state().count() + number]);
        assert_eq!(work(0), Ok(0));
        assert!(shared.sound().is_some());
        assert!(work(1).is_err_and(|words| words.contains("the native core panicked: index out of bounds")));
        assert!(shared.sound().is_none());
        assert_eq!(work(0), Err(UNUSABLE.to_owned()));
        assert_eq!(caught(|| shared.locked().position), Err(UNUSABLE.to_owned()));
    }
}
