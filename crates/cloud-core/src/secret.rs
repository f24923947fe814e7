//! Secret values.

use std::fmt;

/// A value that cannot be printed by accident.
///
/// `Debug` shows nothing of it, there is no `Display`, and reading it takes a call of [`expose`](Self::expose), which is
/// easy to search for.
///
/// ```
/// use cloud_core::Secret;
///
/// let password = Secret::new("correct horse");
/// assert_eq!(format!("{password:?}"), "[secret]");
/// assert_eq!(*password.expose(), "correct horse");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value. Never pass it to a log, an error or a plan.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Converts the value to another secret.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Secret<U> {
        Secret(change(self.0))
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
