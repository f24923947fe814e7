//! Scripts: settings in a file.

use crate::error::Error;
use crate::settings::CloudSettings;
use std::path::Path;

impl CloudSettings {
    /// Reads a script: YAML, of which JSON is a part.
    pub fn from_script(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::File { path: path.to_owned(), source })?;
        serde_saphyr::from_str(&text)
            .map_err(|error| Error::Script { path: path.to_owned(), source: Box::new(error) })
    }
}
