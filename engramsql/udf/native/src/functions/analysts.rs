//! The macros of catalog/views: questions of analysts, in SQL over the functions of this extension.
//!
//! A file holds macros of one topic. The comment above each macro tells what `engram_functions()` says of it, in three
//! parts that lines of `--` alone keep apart: its signature, its description, an example.

use std::sync::OnceLock;

/// The files.
const FILES: &[&str] = &[
    include_str!("../../../../../catalog/views/ngrams.sql"),
    include_str!("../../../../../catalog/views/corpus.sql"),
    include_str!("../../../../../catalog/views/rows.sql"),
    include_str!("../../../../../catalog/views/tables.sql"),
];

/// How every statement begins.
const CREATE: &str = "CREATE OR REPLACE MACRO main.";
/// How the last part of a comment begins.
const EXAMPLE: &str = "Example: ";

/// One macro.
#[derive(Debug)]
pub struct Analyst {
    /// SQL name.
    pub name: &'static str,
    /// Arguments and result.
    pub signature: String,
    /// What it tells, on one line.
    pub description: String,
    /// A query.
    pub example: String,
    /// The statement that makes it.
    pub statement: &'static str,
}

/// All of them, in the order of the files.
pub fn all() -> &'static [Analyst] {
    static PARSED: OnceLock<Vec<Analyst>> = OnceLock::new();
    // Files that ship parse: a test proves it.
    PARSED.get_or_init(|| FILES.iter().flat_map(|file| parse(file)).collect())
}

/// The macros of one file, but for those whose comment lacks a part.
fn parse(file: &'static str) -> Vec<Analyst> {
    let starts: Vec<usize> = file.match_indices(CREATE).map(|(at, _)| at).collect();
    let mut macros = Vec::with_capacity(starts.len());
    let mut before = 0;
    for start in starts {
        let end = file[start..].find(";\n").map_or(file.len(), |end| start + end);
        let statement = &file[start..end];
        let name = statement[CREATE.len()..].split('(').next().unwrap_or_default();
        // The comment that ends where the statement begins: a blank line sets it apart from the file's own.
        let comment = file[before..start].rsplit("\n\n").next().unwrap_or_default();
        let lines = comment.lines().map(|line| line.trim_start_matches("--").trim());
        let lines: Vec<&str> = lines.skip_while(|line| line.is_empty()).collect();
        let parts: Vec<String> = lines.split(|line| line.is_empty()).map(|part| part.join(" ")).collect();
        if let [signature, description @ .., example] = &parts[..]
            && let Some(example) = example.strip_prefix(EXAMPLE)
        {
            let (signature, description, example) = (signature.clone(), description.join(" "), example.to_owned());
            macros.push(Analyst { name, signature, description, example, statement });
        }
        before = end;
    }
    macros
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_macro_that_ships_says_what_it_is() {
        let statements: usize = FILES.iter().map(|file| file.matches("CREATE").count()).sum();
        assert_eq!(all().len(), statements);
        assert_eq!(all().iter().map(|found| found.name).collect::<HashSet<_>>().len(), statements);
        for Analyst { name, signature, description, example, statement } in all() {
            assert!(name.starts_with("engram_"), "{name}");
            assert!(signature.starts_with(&format!("{name}(")) && signature.contains(") -> ("), "{signature}");
            assert!(description.ends_with('.') && description.len() > 30, "{name}: {description}");
            assert!(example.contains(&format!("{name}(")), "{name}: {example}");
            assert!(!statement.contains(';') && statement.contains(" AS TABLE\n"), "{name}");
        }
    }

    #[test]
    fn a_macro_without_all_parts_of_its_comment_is_left_out() {
        let file = "-- A topic.\n\n-- engram_x() -> (y)\n--\n-- Says y.\nCREATE OR REPLACE MACRO main.engram_x() AS TABLE\nSELECT 1 AS y;\n";
        assert!(parse(file).is_empty());
    }
}
