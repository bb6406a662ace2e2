//! What a callback can fail with.

/// Result of everything inside the extension.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a SQL function refused. The `Display` text is what the SQL user reads.
#[derive(Debug)]
pub enum Error {
    /// The engine refused; its text is complete.
    Engine(Box<engram_engine::Error>),
    /// An argument of the wrong type or shape; shown behind the function's name.
    Argument(String),
    /// A complete text: what [`message`](Error::message) gave on another thread.
    Told(String),
    /// Panics when it is shown: the guard's test.
    #[cfg(test)]
    Panicking,
}

impl Error {
    /// A refusal in one line.
    pub fn argument(text: impl Into<String>) -> Error {
        Error::Argument(text.into())
    }

    /// The text for a SQL user of `function`.
    pub fn message(&self, function: &str) -> String {
        match self {
            Error::Engine(error) => error.to_string(),
            Error::Argument(text) => format!("{function}: {text}"),
            Error::Told(text) => text.clone(),
            #[cfg(test)]
            Error::Panicking => panic!("panic in Display"),
        }
    }
}

impl<E: Into<engram_engine::Error>> From<E> for Error {
    fn from(error: E) -> Error {
        Error::Engine(Box::new(error.into()))
    }
}
