//! All files of a store or view against their block checksums, two at a time.

use super::blocks::{Choice, Summed};
use super::finding::{Finding, Report, name_of};
use super::state::Resumable;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::read::ReadError;
use crate::source::FileStamp;
use crate::storage::checksum::Checksums;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Files read at once: while the reads of one run out, those of the other keep the disk busy.
const WORKERS: usize = 2;

/// Reports what is wrong with the size of a file, or that it is no file; whether its blocks can be looked at.
pub(super) fn check_size(path: &Path, shard: Option<u32>, expected: u64, report: &mut Report<'_>) -> bool {
    let name = name_of(path);
    match FileStamp::of(path) {
        Ok(stamp) if stamp.bytes() == expected => true,
        Ok(stamp) => {
            let found = stamp.bytes();
            let what = match found.checked_sub(expected) {
                Some(extra) => format!("{extra} bytes too many"),
                None => format!("{} bytes missing", expected - found),
            };
            report.add(Finding::bad("size", shard, format!("{name}: {what}")).values(expected, found));
            true
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.add(Finding::bad("files", shard, format!("{name} is missing")));
            false
        }
        Err(error) => {
            report.add(Finding::bad("files", shard, format!("{name} cannot be used: {error}")));
            false
        }
    }
}

/// The checksums in `directory`, if they prove themselves. `by`: kind of check, and the document that recorded the digest
/// `expected`.
pub(super) fn read_checksums(
    directory: &Path,
    file: &str,
    by: (&'static str, &str),
    expected: Option<&str>,
    report: &mut Report<'_>,
) -> Option<Checksums> {
    let (check, document) = by;
    match Checksums::read(&directory.join(file)) {
        Ok((checksums, found)) => {
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                let detail = format!("{file} is whole, but not the one that {document} was written with");
                report.add(Finding::bad(check, None, detail).values(expected, &found));
            }
            Some(checksums)
        }
        Err(error) => {
            report.add(Finding::bad(check, None, error.to_string()));
            None
        }
    }
}

/// Names in `directory` that `is_part` does not know, sorted.
pub(super) fn others(directory: &Path, is_part: &dyn Fn(&str) -> bool, report: &mut Report<'_>) -> Vec<String> {
    match std::fs::read_dir(directory) {
        Ok(entries) => {
            let names = entries.flatten().map(|entry| name_of(&entry.path()));
            let mut names: Vec<String> = names.filter(|name| !is_part(name)).collect();
            names.sort();
            names
        }
        Err(error) => {
            report.add(Finding::bad("files", None, format!("'{}': {error}", directory.display())));
            Vec::new()
        }
    }
}

/// Whether `name` is that of one of `shards` shard files, as it is written: at least three digits.
pub(super) fn is_shard(name: &str, shards: u64) -> bool {
    let digits = name.strip_prefix("shard_").and_then(|rest| rest.strip_suffix(".bin"));
    digits.is_some_and(|digits| {
        digits.parse::<u64>().is_ok_and(|number| number < shards && format!("{number:03}") == digits)
    })
}

/// Checks the chosen blocks of every file and reports them in the order of `files`. What `state` knows to be good already
/// is left out.
pub(super) fn check_blocks(
    files: &[Summed<'_>],
    choice: Choice,
    state: &mut Resumable,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    // A stamp from before the first read: what is written afterwards is not what was found good.
    let stamps: Vec<Option<String>> = files.iter().map(|file| stamp_of(&file.path)).collect();
    let names: Vec<String> = files.iter().map(|file| name_of(&file.path)).collect();
    let known = |index: usize| stamps[index].as_ref().is_some_and(|stamp| state.knows(&names[index], stamp));
    let to_do: Vec<bool> = (0..files.len()).map(|index| !known(index)).collect();
    let total = files.iter().zip(&to_do).filter(|(_, to_do)| **to_do).map(|(file, _)| file.cost(choice)).sum();
    progress.begin("verify", total);

    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let (done, results) = channel();
    let work = |done: std::sync::mpsc::Sender<(usize, Result<Vec<Finding>>)>| {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return };
            if failed.load(Ordering::Relaxed) {
                return;
            }
            let answer = if to_do[index] {
                file.check(choice, progress)
            } else {
                let detail = format!("{}: found good before, not written to since", names[index]);
                Ok(vec![Finding::good(file.check, file.shard, detail)])
            };
            if answer.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            if done.send((index, answer)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = if choice == Choice::All { WORKERS.min(files.len()) } else { 1 };
        let mut threads = Vec::new();
        for _ in 0..workers {
            let (done, work) = (done.clone(), &work);
            let thread = std::thread::Builder::new().name("engramsql-verify".to_owned());
            match thread.spawn_scoped(scope, move || work(done)) {
                Ok(thread) => threads.push(thread),
                // One is enough.
                Err(_) if !threads.is_empty() => (),
                Err(error) => return Err(Error::from(ReadError::io(&files[0].path, error))),
            }
        }
        drop(done);
        let mut answer = Ok(());
        let mut waiting = BTreeMap::new();
        let mut told = 0;
        for (index, result) in results {
            match result {
                Ok(findings) => {
                    let good = findings.iter().all(|finding| finding.ok);
                    if let Some(stamp) = stamps[index].as_ref().filter(|_| good && to_do[index] && answer.is_ok()) {
                        answer = state.finish(&names[index], stamp);
                        if answer.is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                    }
                    waiting.insert(index, findings);
                }
                Err(error) => answer = answer.and(Err(error)),
            }
            while let Some(findings) = waiting.remove(&told) {
                findings.into_iter().for_each(|finding| report.add(finding));
                told += 1;
            }
        }
        // A panic in a worker goes on here.
        threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // Also where everything was read by the time somebody wanted the end: what was found good is kept.
        answer.and_then(|()| progress.check())
    })
}

/// What tells one content of a file from another without reading it, or `None` for what is no file.
pub(super) fn stamp_of(path: &Path) -> Option<String> {
    let stamp = FileStamp::of(path).ok()?;
    let (seconds, nanoseconds) = stamp.modified();
    Some(format!("{} bytes, {seconds}.{nanoseconds:09}", stamp.bytes()))
}
