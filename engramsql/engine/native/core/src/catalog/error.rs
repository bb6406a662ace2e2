//! Why the catalog refused.

use crate::error::ErrorKind;
use std::path::PathBuf;

/// Why the catalog refused a name or a change.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// No table of that name.
    #[error("no table named '{name}'{hint}")]
    UnknownTable {
        /// The name asked for.
        name: String,
        /// What to do, starting with "; ".
        hint: String,
    },
    /// No view of that name.
    #[error("no view named '{name}'{hint}")]
    UnknownView {
        /// The name asked for.
        name: String,
        /// What to do, starting with "; ".
        hint: String,
    },
    /// No table or view of that name, where either would do.
    #[error("no table or view named '{name}'{hint}")]
    UnknownName {
        /// The name asked for.
        name: String,
        /// What to do, starting with "; ".
        hint: String,
    },
    /// A name that is taken.
    #[error("a {what} named '{name}' is already there; {remedy}")]
    NameTaken {
        /// "table", "view" or "SQL view".
        what: &'static str,
        /// The name.
        name: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A name that cannot be one.
    #[error("'{name}' cannot be a name: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A path with several tables, asked for as one.
    #[error("'{}' holds one table for each of the layers {layers:?}; append the layer, as in '{}#l{first}'", path.display(), path.display(), first = layers.first().unwrap_or(&0))]
    SeveralLayers {
        /// The path.
        path: PathBuf,
        /// Its layers.
        layers: Vec<u32>,
    },
    /// A directory that is no database.
    #[error("'{}' is no EngramSQL database: {reason}", path.display())]
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// What was found, and what to do.
        reason: String,
    },
    /// A catalog written by a newer version.
    #[error("'{}' has catalog format version {found}, this version of EngramSQL reads up to {supported}; upgrade engramsql", path.display())]
    NewerVersion {
        /// The catalog file.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Newest version known.
        supported: u64,
    },
    /// A catalog that does not parse.
    #[error("catalog '{}' is damaged: {detail}{remedy}", path.display())]
    Damaged {
        /// The catalog file.
        path: PathBuf,
        /// What is wrong, with its place.
        detail: String,
        /// What to do, starting with "; ".
        remedy: String,
    },
    /// A catalog with a member that its version does not have.
    #[error("catalog '{}' has a member {member} that format version {version} does not know; what changed it is not this version of EngramSQL: upgrade engramsql, or take the member out", path.display())]
    UnknownMember {
        /// The catalog file.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The member, with its place.
        member: String,
    },
    /// A change to a database that was opened read-only.
    #[error("database '{}' was opened read-only; open it again without read_only to change it", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// Something that needs files of its own, asked of a session without a directory.
    #[error(
        "{what} needs a database directory, and this database is in memory; open one, or CALL engram_attach('DIR')"
    )]
    InMemory {
        /// What was asked for.
        what: &'static str,
    },
    /// A session that was pointed elsewhere while it waited.
    #[error("this session was attached to another database while it waited to change '{}'; nothing was changed, try again", path.display())]
    Detached {
        /// The directory it was attached to.
        path: PathBuf,
    },
    /// Another writer.
    #[error("database '{}' is being changed by another process{holder}; try again when it is done", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// " (process N)" or nothing.
        holder: String,
    },
    /// A source that has become another table.
    #[error("source '{}' of table '{name}' has changed since it was registered: {what} was {registered}, is now {found}; drop and register it again", path.display())]
    Drifted {
        /// The source.
        path: PathBuf,
        /// The table.
        name: String,
        /// Property.
        what: &'static str,
        /// Value in the catalog.
        registered: String,
        /// Value now.
        found: String,
    },
    /// A place to which a table was said to have moved, and that holds another one.
    #[error("'{}' does not hold what table '{name}' was registered from: {what} was {registered}, there it is {found}; the table was left where it was", path.display())]
    OtherSource {
        /// The place.
        path: PathBuf,
        /// The table.
        name: String,
        /// Property.
        what: &'static str,
        /// Value in the catalog.
        registered: String,
        /// Value there.
        found: String,
    },
    /// An entry that another process changed during a longer operation on it.
    #[error("'{name}' was changed by another process meanwhile; nothing was done, try again")]
    ChangedMeanwhile {
        /// The table or view.
        name: String,
    },
    /// A table that cannot go before its views.
    #[error("table '{name}' has the views '{}'; drop those first", views.join("', '"))]
    HasViews {
        /// The table.
        name: String,
        /// Its materialised views.
        views: Vec<String>,
    },
    /// Data that the database does not own.
    #[error("'{}' is not in a directory of its own inside the database, so it is never removed; drop '{name}' without its data", path.display())]
    ForeignData {
        /// The table or view.
        name: String,
        /// Where its data is.
        path: PathBuf,
    },
    /// Data that something else in the catalog needs.
    #[error("'{}' also holds the data of '{other}'; drop '{name}' without its data, or drop '{other}' first", path.display())]
    SharedData {
        /// The table or view.
        name: String,
        /// The other one.
        other: String,
        /// Where their data is.
        path: PathBuf,
    },
    /// Data that outlived its entry.
    #[error("'{}' is no longer in the catalog, but could not be removed: {error}; remove it by hand, or with engramsql orphans --remove", path.display())]
    NotRemoved {
        /// What is left.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A path that JSON cannot hold.
    #[error("path '{}' is not valid Unicode and cannot be kept in a catalog; open it by a Unicode path (a symbolic link will do)", path.display())]
    PathNotUnicode {
        /// The path.
        path: PathBuf,
    },
    /// The system refused to read or write.
    #[error("cannot {action} '{}': {error}", path.display())]
    Io {
        /// "read", "write", "lock", ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl CatalogError {
    /// A name that is taken by something that may be replaced.
    pub(super) fn taken_and_replaceable(what: &'static str, name: &str) -> CatalogError {
        let remedy = "replace it, drop it first, or choose another name";
        CatalogError::NameTaken { what, name: name.to_owned(), remedy }
    }

    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CatalogError::UnknownTable { .. } | CatalogError::UnknownView { .. } | CatalogError::UnknownName { .. } => {
                ErrorKind::UnknownTable
            }
            CatalogError::Locked { .. } => ErrorKind::Locked,
            CatalogError::BadName { .. } | CatalogError::SeveralLayers { .. } => ErrorKind::Argument,
            _ => ErrorKind::Catalog,
        }
    }
}
