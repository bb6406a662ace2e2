//! The text of one value of an input vector, for error messages.

use super::input::{Integer, Vector};
use super::sys::{duckdb_hugeint, duckdb_uhugeint};
use super::types::{IntType, Type};

/// Longest text shown, in characters.
const LONGEST: usize = 60;

impl Vector<'_> {
    /// The first value that is not NULL, as SQL shows it, cut where it gets long. `None`: all are NULL, or its type has
    /// no plain text here.
    pub fn first_shown(&self) -> Option<String> {
        let row = (0..self.len()).find(|&row| !self.is_null(row))?;
        let mut text = String::new();
        self.show(row, &mut text)?;
        Some(shorten(text))
    }

    /// Appends row `row` to `text`, which may stay cut once it is longer than anybody will see.
    fn show(&self, row: usize, text: &mut String) -> Option<()> {
        if self.is_null(row) {
            text.push_str("NULL");
            return Some(());
        }
        match self.ty() {
            Type::Int(ty) => text.push_str(&self.integer(*ty, row).to_string()),
            Type::Boolean => text.push_str(if self.boolean(row) { "true" } else { "false" }),
            // Debug keeps the ".0" that SQL shows.
            Type::Double => text.push_str(&format!("{:?}", self.double(row))),
            // SAFETY: elements are floats by the type tag.
            Type::Float => text.push_str(&format!("{:?}", unsafe { self.slice::<f32>()[row] })),
            Type::Decimal { width, scale } => text.push_str(&point(self.unscaled(*width, row), (*scale).into())),
            Type::Text => {
                text.push('\'');
                text.push_str(&self.text(row).ok()?.replace('\'', "''"));
                text.push('\'');
            }
            Type::List(_) | Type::Array(..) => {
                let elements = self.elements();
                text.push('[');
                for (index, element) in self.list(row, &elements).ok()?.enumerate() {
                    // What lies behind is cut anyway, and a list may be long.
                    if text.len() > 4 * LONGEST {
                        break;
                    }
                    if index > 0 {
                        text.push_str(", ");
                    }
                    elements.show(element, text)?;
                }
                text.push(']');
            }
            _ => return None,
        }
        Some(())
    }

    fn integer(&self, ty: IntType, row: usize) -> Integer {
        // SAFETY: `ty` is the vector's own type tag and says what the elements are; `slice` checks the row.
        unsafe {
            Integer::Signed(match ty {
                IntType::I8 => self.slice::<i8>()[row].into(),
                IntType::I16 => self.slice::<i16>()[row].into(),
                IntType::I32 => self.slice::<i32>()[row].into(),
                IntType::I64 => self.slice::<i64>()[row].into(),
                IntType::U8 => self.slice::<u8>()[row].into(),
                IntType::U16 => self.slice::<u16>()[row].into(),
                IntType::U32 => self.slice::<u32>()[row].into(),
                IntType::U64 => self.slice::<u64>()[row].into(),
                IntType::I128 => signed(self.slice::<duckdb_hugeint>()[row]),
                IntType::U128 => {
                    let value = self.slice::<duckdb_uhugeint>()[row];
                    let value = (u128::from(value.upper) << 64) | u128::from(value.lower);
                    match i128::try_from(value) {
                        Ok(value) => value,
                        Err(_) => return Integer::Huge(value),
                    }
                }
            })
        }
    }

    /// A decimal without its point. DuckDB stores it as the narrowest integer that `width` digits fit.
    fn unscaled(&self, width: u8, row: usize) -> i128 {
        // SAFETY: `width` is from the vector's own type and says what the elements are.
        unsafe {
            match width {
                0..=4 => self.slice::<i16>()[row].into(),
                5..=9 => self.slice::<i32>()[row].into(),
                10..=18 => self.slice::<i64>()[row].into(),
                _ => signed(self.slice::<duckdb_hugeint>()[row]),
            }
        }
    }
}

fn signed(value: duckdb_hugeint) -> i128 {
    (i128::from(value.upper) << 64) | i128::from(value.lower)
}

/// At most [`LONGEST`] characters.
pub fn shorten(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// The digits of a decimal with its point.
fn point(unscaled: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_point_and_sign() {
        let shown =
            [(15, 1), (-15, 1), (5, 3), (0, 2), (7, 0), (-123_456, 2)].map(|(value, scale)| point(value, scale));
        assert_eq!(shown, ["1.5", "-1.5", "0.005", "0.00", "7", "-1234.56"]);
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(shorten("7".into()), "7");
        assert_eq!(shorten("\u{e9}".repeat(61)), "\u{e9}".repeat(60) + "...");
    }
}
