//! Writing the fields of STRUCTs, a chunk of them at once.

/// Writes the fields of STRUCTs in order, `rows[i]` of a vector of `len` rows from `found[i]`: `plain` ones are never NULL,
/// the others are where there is no value.
///
/// Field by field, and runs of NULLs at once: asking DuckDB for memory costs more than a value.
macro_rules! write_fields {
    ($output:expr, $len:expr, $rows:expr, $found:expr; $($kind:ident $type:ty: $value:expr),* $(,)?) => {
        let mut fields = 0..;
        $(
            let mut field = $output.field(fields.next().unwrap_or_default());
            $crate::functions::fields::write_fields!(@$kind field, $len, $rows, $found, $type, $value);
        )*
        let _ = fields;
    };
    (@plain $field:ident, $len:expr, $rows:expr, $found:expr, $type:ty, $value:expr) => {
        let value: fn(&_) -> $type = $value;
        let values = $field.values::<$type>($len);
        for (&row, one) in $rows.iter().zip($found) {
            values[row] = value(one);
        }
    };
    (@some $field:ident, $len:expr, $rows:expr, $found:expr, $type:ty, $value:expr) => {
        let value: fn(&_) -> Option<$type> = $value;
        let values = $field.values::<$type>($len);
        for (&row, one) in $rows.iter().zip($found) {
            values[row] = value(one).unwrap_or_default();
        }
        let mut absent = 0..0;
        for (&row, _) in $rows.iter().zip($found).filter(|(_, one)| value(one).is_none()) {
            if row != absent.end {
                $field.set_nulls(absent);
                absent = row..row;
            }
            absent.end += 1;
        }
        $field.set_nulls(absent);
    };
}

pub(super) use write_fields;
