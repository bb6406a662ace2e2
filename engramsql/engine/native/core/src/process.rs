//! Values that each process makes for itself, forked children too. Unsafe code lives here.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One `T` for each process that comes to use it: a child gets its own, and never waits for a lock that another thread
/// of its parent held at the fork.
pub(crate) struct PerProcess<T: Send + Sync> {
    newest: AtomicPtr<Node<T>>,
    owned: PhantomData<T>,
}

struct Node<T> {
    process: u32,
    value: T,
    older: *mut Node<T>,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { newest: AtomicPtr::new(std::ptr::null_mut()), owned: PhantomData }
    }

    /// This process's value; `make` gets the value of the process it was forked from, if that had one. Of several
    /// threads that make a value at once, one wins.
    pub(crate) fn get<E>(&self, make: impl FnOnce(Option<&T>) -> Result<T, E>) -> Result<&T, E> {
        let process = std::process::id();
        let mut newest = self.newest.load(Ordering::Acquire);
        // SAFETY: nodes are published whole (release) and freed only by Drop, which borrows exclusively.
        if let Some(node) = unsafe { newest.as_ref() }
            && node.process == process
        {
            return Ok(&node.value);
        }
        // SAFETY: as above.
        let value = make(unsafe { newest.as_ref() }.map(|node| &node.value))?;
        let own = Box::into_raw(Box::new(Node { process, value, older: newest }));
        loop {
            match self.newest.compare_exchange(newest, own, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: `own` is published now and lives as long as `self`.
                Ok(_) => return Ok(unsafe { &(*own).value }),
                Err(other) => newest = other,
            }
            // SAFETY: `newest` is a published node. Only threads of this process change this copy of the list, so it is
            // a node of this process.
            let node = unsafe { &*newest };
            if node.process == process {
                // SAFETY: `own` came from Box::into_raw and was not published.
                drop(unsafe { Box::from_raw(own) });
                return Ok(&node.value);
            }
        }
    }
}

impl<T: Send + Sync> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let mut node = *self.newest.get_mut();
        while !node.is_null() {
            // SAFETY: every node came from Box::into_raw and is in the list once.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_for_all_threads_of_a_process() {
        let cell = PerProcess::<usize>::new();
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let cell = &cell;
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || *cell.get(|_| Ok::<_, ()>(n)).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|&n| n == seen[0]));
        assert_eq!(PerProcess::<u8>::new().get(|_| Err("no")), Err("no"));
    }
}
