//! A sandbox that grants an io_uring and refuses the call that uses it. A process of its own, because the system is asked
//! once.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::settings;

/// Refuses `io_uring_enter` to this thread and its children (seccomp(2)).
fn refuse_enter() {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut lines = [
        // The number of the call is the first field of what a filter sees.
        line(load, 0, 0),
        line(jump, 1, libc::SYS_io_uring_enter as u32),
        line(answer, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        line(answer, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: lines.len() as u16, filter: lines.as_mut_ptr() };
    // SAFETY: the program and its lines outlive the calls, which copy them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn rows_come_another_way_where_the_call_that_waits_is_refused() {
    // Beside the build's files: a temporary directory is often in memory and knows no direct reads.
    let store = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rows: Vec<u8> = (0..100 * 160).map(|at| (at % 251) as u8).collect();
    std::fs::write(store.path().join("shard_000.bin"), &rows).unwrap();
    refuse_enter();

    let session = Session::in_memory();
    let options = RegisterOptions { width: Some(160), ..Default::default() };
    session.register("t", store.path(), &options).unwrap();
    let table = session.table("t").unwrap();
    assert!(!table.reads_directly());
    let mut out = vec![0; 2 * 160];
    settings::set_reader("sequential").unwrap();
    table.fetch_into(&[7, 3], &mut out).unwrap();
    assert_eq!(out, [&rows[7 * 160..8 * 160], &rows[3 * 160..4 * 160]].concat());
    settings::set_reader("io_uring").unwrap();
    let error = table.fetch_into(&[7, 3], &mut out).unwrap_err().to_string();
    assert!(error.contains("the system refuses it"), "{error}");
}
