//! The table argument: a name or path, resolved when a statement is prepared and again when it runs.

use crate::error::{Error, Result};
use crate::ffi::{ScalarArguments, Type, Vector};
use engram_engine::Table;
use engram_engine::catalog::{Session, SpecConstants};
use engram_engine::spec::Spec;
use engram_engine::view::View;
use std::sync::Arc;

/// A table that a prepared statement refers to.
pub struct Pinned {
    name: String,
    table: Arc<Table>,
}

impl Pinned {
    /// Resolves `name`; an unknown one fails here, when the statement is prepared.
    pub fn new(session: &Session, name: String) -> Result<Pinned> {
        let table = session.table(&name)?;
        Ok(Pinned { name, table })
    }

    /// The table as it was when the statement was prepared.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The table now. A prepared statement may run after its table was registered anew; its columns, its checks and
    /// the row ids derived from its tokens then no longer hold.
    pub fn current(&self, session: &Session) -> Result<Arc<Table>> {
        let now = session.table(&self.name)?;
        if Arc::ptr_eq(&now, &self.table) || same_meaning(&now, &self.table) {
            Ok(now)
        } else {
            Err(Error::argument(format!(
                "table '{}' changed since this statement was prepared; prepare it again",
                self.name
            )))
        }
    }
}

/// Whether what was derived from one table holds for the other. Where the rows lie may differ: an open table is looked
/// up again, and a table whose files moved is opened again.
fn same_meaning(a: &Table, b: &Table) -> bool {
    (a.rows(), a.row_bytes(), a.dim(), a.layer()) == (b.rows(), b.row_bytes(), b.dim(), b.layer())
        && a.format() == b.format()
        && match (a.spec(), b.spec()) {
            (None, None) => true,
            (Some(a), Some(b)) => same_rowids(a, b),
            _ => false,
        }
}

/// Whether both specs give every sequence the same row ids.
fn same_rowids(a: &Spec, b: &Spec) -> bool {
    let special = |spec: &Spec| (spec.eos_token(), spec.pad_token(), spec.dead_token(), spec.history_len());
    let same_map = match (a.token_map(), b.token_map()) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    };
    SpecConstants::of(a) == SpecConstants::of(b) && special(a) == special(b) && same_map
}

/// What an argument names.
pub trait Named: Sized {
    /// "table" or "view".
    const WHAT: &'static str;
    /// What is called `name`, open.
    fn open(session: &Session, name: &str) -> Result<Arc<Self>>;
}

impl Named for Table {
    const WHAT: &'static str = "table";

    fn open(session: &Session, name: &str) -> Result<Arc<Table>> {
        Ok(session.table(name)?)
    }
}

impl Named for View {
    const WHAT: &'static str = "view";

    fn open(session: &Session, name: &str) -> Result<Arc<View>> {
        Ok(session.view(name)?)
    }
}

/// An error if the table has no spec.
pub fn needs_spec(table: &Table) -> Result<()> {
    table.require_spec()?;
    Ok(())
}

/// An error if the table has no value format.
pub fn needs_format(table: &Table) -> Result<()> {
    table.require_dim()?;
    Ok(())
}

/// The table or view argument of a scalar function.
pub enum TableArgument {
    /// The same for every row.
    Constant(String),
    /// A column or parameter.
    PerRow,
}

impl TableArgument {
    /// Looks at argument `index`; a constant name that is unknown fails here.
    pub fn bind(session: &Session, arguments: &ScalarArguments<'_>, index: usize) -> Result<TableArgument> {
        TableArgument::bind_to::<Table>(session, arguments, index)
    }

    /// The same; a table that is known this early must also pass `check`.
    pub fn bind_checked(
        session: &Session,
        arguments: &ScalarArguments<'_>,
        index: usize,
        check: impl FnOnce(&Table) -> Result<()>,
    ) -> Result<TableArgument> {
        let bound = TableArgument::bind(session, arguments, index)?;
        if let TableArgument::Constant(name) = &bound {
            check(&*session.table(name)?)?;
        }
        Ok(bound)
    }

    /// The same as [`bind`](Self::bind) for anything that has a name.
    pub fn bind_to<T: Named>(
        session: &Session,
        arguments: &ScalarArguments<'_>,
        index: usize,
    ) -> Result<TableArgument> {
        let Some(value) = arguments.constant(index)? else {
            return Ok(TableArgument::PerRow);
        };
        match value.text(T::WHAT)? {
            Some(name) => {
                T::open(session, &name)?;
                Ok(TableArgument::Constant(name))
            }
            // Also what a parameter without a value folds to.
            None => Ok(TableArgument::PerRow),
        }
    }

    /// Resolves a constant name for one execution.
    pub fn resolve<T: Named>(&self, session: &Session) -> Result<Resolver<T>> {
        let mut resolver = Resolver::default();
        if let TableArgument::Constant(name) = self {
            resolver.seen.push((name.clone(), T::open(session, name)?));
        }
        Ok(resolver)
    }
}

/// Tables (or views) of one execution by name; each is looked up once.
pub struct Resolver<T = Table> {
    seen: Vec<(String, Arc<T>)>,
}

impl<T> Default for Resolver<T> {
    fn default() -> Resolver<T> {
        Resolver { seen: Vec::new() }
    }
}

impl<T: Named> Resolver<T> {
    /// Number of the one called `name`.
    pub fn find(&mut self, session: &Session, name: &str) -> Result<usize> {
        if let Some(found) = self.seen.iter().position(|(seen, _)| seen == name) {
            return Ok(found);
        }
        self.seen.push((name.to_owned(), T::open(session, name)?));
        Ok(self.seen.len() - 1)
    }

    /// Number of the one in row `row` of an argument, whose vector is `names`.
    pub fn of_row(
        &mut self,
        session: &Session,
        argument: &TableArgument,
        names: &Vector<'_>,
        row: usize,
    ) -> Result<usize> {
        match argument {
            TableArgument::Constant(_) => Ok(0),
            TableArgument::PerRow => self.of_name(session, names, row),
        }
    }

    /// Number of the one that row `row` of a vector of names names.
    pub fn of_name(&mut self, session: &Session, names: &Vector<'_>, row: usize) -> Result<usize> {
        if names.is_null(row) {
            return Err(Error::argument(format!("the {} name is NULL", T::WHAT)));
        }
        if *names.ty() != Type::Text {
            return Err(Error::argument(format!("{} must be text, got {}", T::WHAT, names.ty())));
        }
        self.find(session, names.text(row)?)
    }

    /// Number `index`.
    pub fn table(&self, index: usize) -> &Arc<T> {
        &self.seen[index].1
    }
}
