//! One io_uring: reads into slots of a buffer that nobody moves. Unsafe code lives here.

use super::aligned::AlignedBytes;
use super::direct::SectorRead;
use super::workers::Failure;
use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Completions to wait for while there is more to submit: fewer cost a system call each, more leave the disk idle.
const BATCH: usize = 16;

/// A ring with registered files and one buffer slot per outstanding read; serves one run.
pub(super) struct Ring {
    ring: IoUring,
    /// Freed only after every read has completed; whatever else happens leaks it, as the kernel may still write to it.
    buffer: ManuallyDrop<AlignedBytes>,
    slot: usize,
    depth: usize,
    setup: &'static str,
}

impl Ring {
    /// A ring for `depth` reads of at most `slot` bytes; an error where the system refuses io_uring.
    pub(super) fn new(files: &[File], depth: usize, slot: usize) -> Result<Ring> {
        let entries = depth.next_power_of_two() as u32;
        let deferred = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries)
            .map(|ring| (ring, "deferred"));
        // Kernels before 6.1 know no deferred task work.
        let cooperative = |_| IoUring::builder().setup_coop_taskrun().build(entries).map(|ring| (ring, "cooperative"));
        let plain = |_| IoUring::new(entries).map(|ring| (ring, "plain"));
        let (ring, setup) = deferred.or_else(cooperative).or_else(plain)?;
        let descriptors: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&descriptors)?;
        // Direct reads need aligned memory: slots start at multiples of the strictest alignment.
        let slot = slot.next_multiple_of(super::aligned::ALIGNMENT).max(super::aligned::ALIGNMENT);
        let buffer = ManuallyDrop::new(AlignedBytes::new(slot * depth));
        Ok(Ring { ring, buffer, slot, depth, setup })
    }

    /// How the ring was set up.
    pub(super) fn setup(&self) -> &'static str {
        self.setup
    }

    /// Carries out `reads`, copying each row to `out` as it comes; the first failure ends it after all reads under way.
    pub(super) fn run(mut self, reads: &[SectorRead], out: &mut [u8]) -> std::result::Result<Duration, Failure> {
        let base = self.buffer.as_mut_slice().as_mut_ptr();
        // Read that each slot serves.
        let mut serving = vec![0usize; self.depth];
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        let (mut next, mut flying) = (0, 0);
        let mut failure: Option<Failure> = None;
        let start = Instant::now();
        while flying > 0 || (next < reads.len() && failure.is_none()) {
            let mut queue = self.ring.submission();
            while failure.is_none() && next < reads.len() {
                let Some(slot) = free.pop() else { break };
                let read = &reads[next];
                // SAFETY: the slot lies within the buffer: slot < depth, and the buffer has `slot` bytes for each.
                let memory = unsafe { base.add(slot * self.slot) };
                let entry = opcode::Read::new(types::Fixed(read.file), memory, read.len)
                    .offset(read.offset)
                    .build()
                    .user_data(slot as u64);
                // SAFETY: `len` is at most the slot's size, and the slot is not free again before its completion was seen, so
                // nothing else uses the memory; the buffer is freed only after every read has completed.
                if unsafe { queue.push(&entry) }.is_err() {
                    free.push(slot);
                    break;
                }
                serving[slot] = next;
                (next, flying) = (next + 1, flying + 1);
            }
            drop(queue);
            let more = next < reads.len() && failure.is_none();
            let wanted = if more { flying.min(BATCH) } else { flying };
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ResourceBusy) => {}
                Err(error) => {
                    // Nobody can tell any more which reads are under way.
                    return Err((reads[next.saturating_sub(1)].file, error));
                }
            }
            for completion in self.ring.completion() {
                let slot = completion.user_data() as usize;
                let read = &reads[serving[slot]];
                flying -= 1;
                free.push(slot);
                let found = completion.result();
                if found < 0 || (found as usize) < read.needed() {
                    let error = match found {
                        0.. => ErrorKind::UnexpectedEof.into(),
                        _ => Error::from_raw_os_error(-found),
                    };
                    failure.get_or_insert((read.file, error));
                } else if read.take > 0 {
                    let target = &mut out[read.out_at..][..read.take as usize];
                    // SAFETY: the read of this slot has completed and delivered `needed()` bytes, so `take` bytes after
                    // `skip` are initialised, and the kernel writes to them no more.
                    let row = unsafe {
                        std::slice::from_raw_parts(base.add(slot * self.slot + read.skip as usize), read.take as usize)
                    };
                    target.copy_from_slice(row);
                }
            }
        }
        let elapsed = start.elapsed();
        drop(ManuallyDrop::into_inner(self.buffer));
        failure.map_or(Ok(elapsed), Err)
    }
}
