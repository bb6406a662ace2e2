//! `ENGRAMSQL_KERNEL` that names no level: one error wherever a spec or a format is made. A process of its own, because
//! the variable is read once.

use engram_engine::cpu::{self, CpuError};
use engram_engine::format::{Decoder, FormatError, ValueFormat};
use engram_engine::spec::{Spec, SpecError};
use engram_engine::{Error, ErrorKind};

#[test]
fn an_unknown_level_is_refused_by_name() {
    // SAFETY: the only test of this process, and nothing has read the environment yet.
    unsafe { std::env::set_var(cpu::VARIABLE, "mmx") };
    let expected = "ENGRAMSQL_KERNEL is 'mmx'; known kernel levels: portable, neon, avx2, avx512";
    assert!(matches!(cpu::level(), Err(CpuError::Unknown { name }) if name == "mmx"));

    let error = ValueFormat::from_name("bf16", None).unwrap_err();
    assert!(matches!(error, FormatError::Kernel(_)));
    let error = Error::from(error);
    assert_eq!((error.to_string().as_str(), error.kind()), (expected, ErrorKind::Argument));

    let error = Spec::released_qwen_ple().unwrap_err();
    assert!(matches!(error, SpecError::Kernel(_)));
    assert_eq!((error.to_string().as_str(), error.kind()), (expected, ErrorKind::Argument));

    // What needs no level still works, as the portable code does it.
    let mut out = [0.0];
    Decoder::new(ValueFormat::Bf16).decode(&[0x80, 0x3F], &[], &mut out);
    assert_eq!(out, [1.0]);
}
