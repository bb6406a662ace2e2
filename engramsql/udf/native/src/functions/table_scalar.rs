//! Scalar functions whose first argument names a table: how that one is bound, and resolved for each row.

use super::tables::{Resolver, TableArgument};
use crate::error::Result;
use crate::ffi::{Chunk, OutVector, Overload, Scalar, ScalarArguments, Vector};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::sync::Arc;

/// An error if something cannot be asked of a table.
pub type Check = fn(&Table) -> Result<()>;

/// A [`Scalar`] of which the first argument is the table and nothing else has to be known when it binds.
pub trait TableScalar: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// As in [`Scalar`].
    const SPOKEN: &'static str = Self::NAME;
    /// As in [`Scalar`].
    const UNFOLDED: bool = false;
    /// An error if a table cannot be asked; of a constant one, when the statement is prepared.
    const CHECK: Check = |_| Ok(());
    /// Memory of one thread, kept from chunk to chunk.
    type Scratch: Default + Send + 'static;

    /// All signatures.
    fn overloads() -> Vec<Overload>;
    /// Computes one chunk.
    fn call(
        tables: &mut Tables<'_>,
        scratch: &mut Self::Scratch,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()>;
}

/// The tables of one chunk.
pub struct Tables<'a> {
    session: &'a Session,
    /// `None` if one table is that of every row.
    names: Option<Vector<'a>>,
    resolver: &'a mut Resolver,
}

impl<'a> Tables<'a> {
    /// Those that the first argument names.
    pub fn new(
        session: &'a Session,
        argument: &TableArgument,
        resolver: &'a mut Resolver,
        input: &'a Chunk<'_>,
    ) -> Result<Tables<'a>> {
        let names = match argument {
            TableArgument::Constant(_) => None,
            TableArgument::PerRow => Some(input.column(0)?),
        };
        Ok(Tables { session, names, resolver })
    }

    /// The table, if it is the same for every row.
    pub fn only(&self) -> Option<&Arc<Table>> {
        self.names.is_none().then(|| self.table(0))
    }

    /// The table of row `row`.
    pub fn of_row(&mut self, row: usize) -> Result<&Arc<Table>> {
        let number = self.number(row)?;
        Ok(self.table(number))
    }

    /// Its number among those seen so far.
    pub fn number(&mut self, row: usize) -> Result<usize> {
        match &self.names {
            None => Ok(0),
            Some(names) => self.resolver.of_name(self.session, names, row),
        }
    }

    /// Table number `number`.
    pub fn table(&self, number: usize) -> &Arc<Table> {
        self.resolver.table(number)
    }
}

/// State of one thread.
pub struct Local<S> {
    resolver: Resolver,
    scratch: S,
}

impl<F: TableScalar> Scalar for F {
    const NAME: &'static str = <F as TableScalar>::NAME;
    const SPOKEN: &'static str = <F as TableScalar>::SPOKEN;
    const UNFOLDED: bool = <F as TableScalar>::UNFOLDED;
    type Bound = TableArgument;
    type Local = Local<F::Scratch>;

    fn overloads() -> Vec<Overload> {
        <F as TableScalar>::overloads()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, F::CHECK)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Local<F::Scratch>> {
        Ok(Local { resolver: bound.resolve(session)?, scratch: F::Scratch::default() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Local<F::Scratch>,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { resolver, scratch } = local;
        <F as TableScalar>::call(&mut Tables::new(session, bound, resolver, input)?, scratch, input, output)
    }
}
