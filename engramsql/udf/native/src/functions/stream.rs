//! Results of long engine calls: table functions that run on a thread of their own and send rows as they are found.
//!
//! DuckDB looks for an interrupt only between the chunks of a function, and a chunk without rows ends it. So a function
//! that is called through a macro sends, where it has nothing else, a row of NULLs now and then, which the macro filters
//! out. Called without the macro it waits for the next row, and an interrupt with it.

use super::listing::{self, Cell};
use crate::error::{Error, Result};
use crate::ffi::{Arguments, Column, Columns, OutChunk, Parameter, TableFunction, contained};
use engram_engine::Progress;
use engram_engine::catalog::Session;
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at an interrupt. DuckDB's Python client looks for Ctrl-C once per fifty chunks.
const BEAT: Duration = Duration::from_millis(10);
/// Rows that wait for DuckDB before whoever finds them waits too.
const WAITING: usize = 4096;

/// A table function that takes long.
pub trait Stream: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Positional parameters.
    const PARAMETERS: &'static [Parameter];
    /// Named parameters.
    const NAMED: &'static [(&'static str, Parameter)] = &[];
    /// Result columns.
    const COLUMNS: &'static [(&'static str, Column)];
    /// The arguments, read.
    type Arguments: Send + Sync + 'static;

    /// Reads and checks the arguments. May run several times; changes nothing.
    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<Self::Arguments>;
    /// Does the work, once per execution. Cancelled through `progress` when nobody wants the rows any more.
    fn run(session: &Session, arguments: &Self::Arguments, progress: &Progress, rows: &Rows) -> Result<()>;
}

/// Where the rows of a [`Stream`] go.
pub struct Rows(SyncSender<Message>);

enum Message {
    Row(Vec<Cell>),
    /// There are no more rows, and why if that was not meant.
    End(Result<()>),
}

impl Rows {
    /// Sends one row, once DuckDB has taken enough of those before.
    ///
    /// # Errors
    /// The query has ended.
    pub fn send(&self, row: Vec<Cell>) -> Result<(), engram_engine::Error> {
        self.0.send(Message::Row(row)).map_err(|_| engram_engine::Error::Cancelled)
    }
}

/// A [`Stream`] as a table function. With `BEATS` it sends rows of NULLs while there are no others.
pub struct Streamed<S, const BEATS: bool>(PhantomData<S>);

/// One execution.
pub struct Global {
    progress: Arc<Progress>,
    /// Taken when the execution ends: whoever sends is woken up by that.
    messages: Mutex<Option<Receiver<Message>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Global {
    fn drop(&mut self) {
        self.progress.cancel();
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nothing of a query may run after it.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Shared with the thread.
pub struct Bound<A> {
    session: Arc<Session>,
    arguments: A,
}

impl<S: Stream, const BEATS: bool> TableFunction for Streamed<S, BEATS> {
    const NAME: &'static str = S::NAME;
    const PARAMETERS: &'static [Parameter] = S::PARAMETERS;
    const NAMED: &'static [(&'static str, Parameter)] = S::NAMED;
    type Bound = Arc<Bound<S::Arguments>>;
    type Global = Global;
    type Local = ();

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Self::Bound> {
        for (name, column) in S::COLUMNS {
            columns.add(name, *column);
        }
        let arguments = S::bind(session, arguments)?;
        Ok(Arc::new(Bound { session: Arc::clone(session), arguments }))
    }

    fn init(_session: &Arc<Session>, bound: &Self::Bound) -> Result<Global> {
        let progress = Arc::new(Progress::new());
        let (sender, messages) = sync_channel(WAITING);
        let (theirs, bound) = (Arc::clone(&progress), Arc::clone(bound));
        let work = move || {
            let rows = Rows(sender);
            let done = contained(S::NAME, || S::run(&bound.session, &bound.arguments, &theirs, &rows));
            // Nobody listens any more: then nobody needs to know.
            let _ = rows.0.send(Message::End(done));
        };
        let thread = std::thread::Builder::new()
            .name(S::NAME.to_owned())
            .spawn(work)
            .map_err(|error| Error::argument(format!("the system gives no thread: {error}")))?;
        Ok(Global { progress, messages: Mutex::new(Some(messages)), thread: Some(thread) })
    }

    // One thread: the rows come in the order in which they were found.

    fn call(_bound: &Self::Bound, global: &Global, _local: &mut (), output: &mut OutChunk<'_>) -> Result<()> {
        let mut messages = global.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = messages.as_ref() else {
            return Ok(());
        };
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        let mut end = None;
        loop {
            // What is there is passed on at once.
            let message = if rows.is_empty() {
                match receiver.recv_timeout(BEAT) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) if BEATS => {
                        rows.push(vec![Cell::Null; S::COLUMNS.len()]);
                        break;
                    }
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => Message::End(Ok(())),
                }
            } else {
                match receiver.try_recv() {
                    Ok(message) => message,
                    Err(_) => break,
                }
            };
            match message {
                Message::Row(row) => rows.push(row),
                Message::End(done) => {
                    end = Some(done);
                    break;
                }
            }
            if rows.len() == output.capacity() {
                break;
            }
        }
        if let Some(done) = end {
            messages.take();
            done?;
        }
        listing::write_rows(S::COLUMNS, &rows, output)
    }
}
