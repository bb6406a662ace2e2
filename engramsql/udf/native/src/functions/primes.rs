//! `_engram_is_prime(number)`: whether a head size is what its hash needs.

use super::ids;
use crate::error::{Error, Result};
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::spec::primes::is_prime;
use std::sync::Arc;

/// The function; NULL for NULL, and no negative number is prime.
pub struct IsPrime;

impl Scalar for IsPrime {
    const NAME: &'static str = "_engram_is_prime";
    const SPOKEN: &'static str = "engram_head_primes";
    type Bound = ();
    type Local = ();

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Any]).into(), result: Column::Boolean }]
    }

    fn bind(_session: &Arc<Session>, _arguments: &ScalarArguments<'_>) -> Result<()> {
        Ok(())
    }

    fn init(_session: &Arc<Session>, _bound: &()) -> Result<()> {
        Ok(())
    }

    fn call(
        _session: &Arc<Session>,
        _bound: &(),
        _local: &mut (),
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let values = input.column(0)?;
        ids::check_integers("numbers", &values)?;
        for row in 0..input.len() {
            if values.is_null(row) {
                output.set_null(row);
                continue;
            }
            let too_large = |value| Error::argument(format!("head size {value} does not fit BIGINT"));
            let number = ids::integer(&values, row, too_large)?;
            output.values::<u8>(input.len())[row] = u8::from(u64::try_from(number).is_ok_and(is_prime));
        }
        Ok(())
    }
}
