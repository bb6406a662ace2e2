//! The directory of a view that is being built: taken, resumed, given its name.

use super::error::ViewError;
use super::manifest::Manifest;
use super::plan::Plan;
use crate::catalog::{Held, Session};
use crate::error::Result;
use crate::fault;
use crate::storage::{
    DirectoryLock, StorageError, Unfinished, building_path, clear_directory, remove_directory, remove_leftovers,
    sync_directory,
};
use std::path::{Path, PathBuf};

/// A directory that this process alone writes to.
pub(super) struct Place {
    directory: PathBuf,
    lock: Option<DirectoryLock>,
    /// Whether what is in it is worth nothing to whoever comes later.
    forget: bool,
    /// Whether it has its name already, and is only not in the catalog.
    named: bool,
}

impl Place {
    /// Takes the directory for a view called `name` of the database at `home`, with the plan of what goes on in it: that of
    /// an unfinished build, or `asked`.
    pub(super) fn take(
        session: &Session,
        home: &Path,
        name: &str,
        asked: Plan,
        unfinished: Unfinished,
    ) -> Result<(Place, Plan)> {
        let first = session.first_directory(Held::View, name)?;
        let folder = first.parent().unwrap_or(home);
        let directory = building_path(&first);
        std::fs::create_dir_all(&directory).map_err(|error| StorageError::io("create", &directory, error))?;
        let lock = DirectoryLock::take(&directory)?;
        let mut place = Place { directory, lock: Some(lock), forget: false, named: false };
        if unfinished != Unfinished::Discard
            && let Some(found) = place.found()?
        {
            if unfinished == Unfinished::Refuse {
                return Err(ViewError::Unfinished { name: name.to_owned(), path: place.directory.clone() }.into());
            }
            found.agrees(name, &asked)?;
            remove_leftovers(&place.directory)?;
            return Ok((place, found));
        }
        let wanted = |plan: &Plan| unfinished != Unfinished::Resume || plan.agrees(name, &asked).is_ok();
        if let Some((mut named, plan)) = Place::named(session, name, wanted)? {
            // What is in the other directory is not worth more.
            place.forget = true;
            match unfinished {
                Unfinished::Resume => return Ok((named, plan)),
                Unfinished::Refuse => {
                    return Err(ViewError::Unfinished { name: name.to_owned(), path: named.directory.clone() }.into());
                }
                Unfinished::Discard => named.forget = true,
            }
        }
        clear_directory(&place.directory, &[DirectoryLock::FILE])?;
        // Until the keys are complete nothing in here is worth keeping.
        place.forget = true;
        fault::io("view.plan").map_err(|error| StorageError::io("write", &place.directory, error))?;
        asked.publish(&place.directory)?;
        sync_directory(folder)?;
        Ok((place, asked))
    }

    /// The plan of an unfinished build with complete keys in the directory.
    fn found(&self) -> Result<Option<Plan>> {
        if let Some(plan) = Plan::read(&self.directory)? {
            return Ok(Some(plan).filter(|plan| plan.keys.is_some()));
        }
        // A finished build removes its plan before the directory gets its name.
        match self.finished()? {
            Some((manifest, _)) => Ok(Some(manifest.plan())),
            None => Ok(None),
        }
    }

    /// A directory that got its name and is `wanted`, but came not as far as the catalog: the lock file is still there.
    /// Without that it is one that was dropped and kept, which is none of ours.
    fn named(session: &Session, name: &str, wanted: impl Fn(&Plan) -> bool) -> Result<Option<(Place, Plan)>> {
        let known = session.views()?;
        for directory in session.taken_directories(Held::View, name)? {
            let locked = directory.join(DirectoryLock::FILE).exists();
            if !locked || known.iter().any(|view| view.directory == directory) {
                continue;
            }
            let Ok((manifest, _)) = Manifest::read(&directory) else { continue };
            let plan = manifest.plan();
            if wanted(&plan) {
                let lock = Some(DirectoryLock::take(&directory)?);
                return Ok(Some((Place { directory, lock, forget: false, named: true }, plan)));
            }
        }
        Ok(None)
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps what is in it from now on.
    pub(super) fn keep(&mut self) {
        self.forget = false;
    }

    /// The manifest of a build that is complete but for its place in the catalog, and its digest.
    pub(super) fn finished(&self) -> Result<Option<(Manifest, String)>> {
        match self.directory.join(super::manifest::FILE).symlink_metadata() {
            Ok(_) => Ok(Some(Manifest::read(&self.directory)?)),
            Err(_) => Ok(None),
        }
    }

    /// Gives the directory a free name, which it returns. It stays locked: nobody else may take it for an orphan.
    pub(super) fn rename(&mut self, session: &Session, name: &str) -> Result<PathBuf> {
        if !self.named {
            let target = session.free_directory(Held::View, name)?;
            let failed = |error| StorageError::io("write", &target, error);
            fault::io("view.rename").map_err(failed)?;
            std::fs::rename(&self.directory, &target).map_err(failed)?;
            self.named = true;
            self.directory = target;
            if let Some(folder) = self.directory.parent() {
                sync_directory(folder)?;
            }
        }
        Ok(self.directory.clone())
    }

    /// Gives the directory away: it is in the catalog.
    pub(super) fn give_away(mut self) -> Result<(), StorageError> {
        self.lock.take().map_or(Ok(()), |lock| lock.remove(&self.directory))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.forget {
            let _ = remove_directory(&self.directory);
        }
        drop(self.lock.take());
    }
}
