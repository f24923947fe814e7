//! What machines cost, from the configuration.

use super::read;
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use history::cost::Prices;
use std::path::{Path, PathBuf};

/// The file's name, beside `startnode.yaml`.
const PRICES: &str = "prices.yaml";

/// What machines cost: the file that is named, or the one beside the configuration.
pub fn prices(settings: &Settings, environment: &Environment) -> Result<Prices, Diagnostic> {
    let path = prices_file(settings, environment);
    let remedy = "copy the example of your cloud there and enter your prices, or set prices_file";
    let text = read(&path).map_err(|why| why.with_help(remedy))?;
    Ok(Prices::read(&path.display().to_string(), &text)?)
}

/// Where prices are, whether there are any or not.
#[must_use]
pub fn prices_file(settings: &Settings, environment: &Environment) -> PathBuf {
    let named = settings.paths.prices.as_deref().map(|path| environment.expand(path));
    named.unwrap_or_else(|| Path::new(&settings.file).with_file_name(PRICES))
}
