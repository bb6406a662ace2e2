//! Registration with a DuckDB that is already in the process, so that every database opened afterwards has the functions.
//!
//! DuckDB 2.0 and later export `duckdb_register_static_extension`. The entry point is then called without a function
//! table, so the table is filled from the symbols of the loaded DuckDB module.

use super::entry::{API_VERSION, claim_host, engramsql_init_c_api};
use super::guard::{Report, guard};
use super::sys;
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

/// DuckDB's `duckdb_extension_descriptor`, first layout (DuckDB 2.0).
#[repr(C)]
struct Descriptor {
    version: u32,
    set_error: Option<unsafe extern "C" fn(*mut Descriptor, *const c_char)>,
    internal: *mut c_void,
    name: *const c_char,
    extension_version: *const c_char,
    api_version: *const c_char,
    entry_cpp: Option<unsafe extern "C" fn()>,
    entry_capi_v1:
        Option<unsafe extern "C" fn(sys::duckdb_extension_info, *const sys::duckdb_extension_access) -> bool>,
    entry_capi_v2: Option<unsafe extern "C" fn()>,
    database_callback: Option<unsafe extern "C" fn()>,
}

type Describe = unsafe extern "C" fn(*mut Descriptor) -> i32;
type RegisterStatic = unsafe extern "C" fn(Describe) -> i32;

/// The function table made from the symbols of the one library that [`claim_host`] let in.
static TABLE: OnceLock<Box<sys::duckdb_ext_api_v1>> = OnceLock::new();

unsafe extern "C" fn describe(descriptor: *mut Descriptor) -> i32 {
    /// The layout written below.
    const LAYOUT: u32 = 1;
    // SAFETY: DuckDB passes a live, zero-filled descriptor; the strings are static.
    unsafe {
        if (*descriptor).version < LAYOUT {
            return 1;
        }
        (*descriptor).version = LAYOUT;
        (*descriptor).name = c"engramsql".as_ptr();
        (*descriptor).extension_version = concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast();
        (*descriptor).api_version = API_VERSION.as_ptr();
        (*descriptor).entry_capi_v1 = Some(engramsql_init_c_api);
    }
    0
}

/// `get_api` for an entry that DuckDB calls without one. Null if nothing was registered.
pub(super) unsafe extern "C" fn get_api(_info: sys::duckdb_extension_info, _version: *const c_char) -> *const c_void {
    TABLE.get().map_or(std::ptr::null(), |table| std::ptr::from_ref(table.as_ref()).cast())
}

struct Message(RefCell<CString>);

impl Report for Message {
    fn report(&self, message: &CString) {
        self.0.replace(message.clone());
    }
}

/// Registers the extension with the DuckDB library at `module` (a path; null: the one among the process's global
/// symbols). Databases opened afterwards have the functions. Null on success, else why not (never freed).
///
/// # Safety
/// `module` is null or a C string. The library must already be loaded; it is not loaded by this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engramsql_register_static(module: *const c_char) -> *const c_char {
    // SAFETY: by this function's contract.
    match unsafe { guarded(module) } {
        Ok(()) => std::ptr::null(),
        // A handful of calls per process at most: the caller need not free what it reads.
        Err(message) => message.into_raw(),
    }
}

/// The same for a program that contains this crate: the functions then run on that program's one engine.
///
/// # Errors
/// Why the library at this path was refused, in one line. Databases are opened as before.
pub fn register_static(library: &CStr) -> Result<(), String> {
    // SAFETY: a C string.
    unsafe { guarded(library.as_ptr()) }.map_err(|message| message.to_string_lossy().into_owned())
}

/// # Safety
/// As for [`engramsql_register_static`].
unsafe fn guarded(module: *const c_char) -> Result<(), CString> {
    let message = Message(RefCell::new(CString::default()));
    let done = guard(&message, "engramsql", || {
        // SAFETY: by this function's contract.
        unsafe { register(module) }
    });
    done.ok_or_else(|| message.0.take())
}

/// # Safety
/// As for [`engramsql_register_static`].
unsafe fn register(module: *const c_char) -> Result<()> {
    // SAFETY: NOLOAD only looks up a library that is already there; its handle is kept for the life of the process.
    let handle = unsafe {
        if module.is_null() {
            libc::RTLD_DEFAULT
        } else {
            let handle = libc::dlopen(module, libc::RTLD_NOLOAD | libc::RTLD_NOW);
            if handle.is_null() {
                return Err(Error::argument(format!(
                    "{} is not loaded in this process",
                    CStr::from_ptr(module).to_string_lossy()
                )));
            }
            handle
        }
    };
    // SAFETY: dlsym on a live handle with a C string.
    let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let register = find(c"duckdb_register_static_extension");
    if register.is_null() {
        return Err(Error::argument("this DuckDB has no static registration (2.0 and later do); use LOAD"));
    }
    // A registration that fails later makes opening any database fail, so everything is looked up before.
    // SAFETY: every slot is an optional function pointer, for which zero is None; `find` returns the C API function of
    // that name from a library that exports the C API.
    let table = unsafe {
        let mut table = Box::new(std::mem::zeroed::<sys::duckdb_ext_api_v1>());
        sys::fill(&mut table, find)
            .map_err(|missing| Error::argument(format!("this DuckDB does not export {missing}; use LOAD")))?;
        table
    };
    claim_host(table.duckdb_connect.map_or(0, |function| function as usize))?;
    // Already set: by an earlier registration with the same library.
    let _ = TABLE.set(table);
    // SAFETY: DuckDB declares this symbol with this type.
    let state = unsafe { std::mem::transmute::<*mut c_void, RegisterStatic>(register)(describe) };
    if state == 0 { Ok(()) } else { Err(Error::argument("DuckDB refused the static registration")) }
}
