//! Reads the price file of the configuration.

use super::read;
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use history::cost::Prices;
use std::path::{Path, PathBuf};

/// Default name of the price file, next to `startnode.yaml`.
const PRICES: &str = "prices.yaml";

/// Reads the configured price file, or the one next to `startnode.yaml`.
pub fn prices(settings: &Settings, environment: &Environment) -> Result<Prices, Diagnostic> {
    let path = prices_file(settings, environment);
    let remedy = "copy the example of your cloud there and enter your prices, or set prices_file";
    let text = read(&path).map_err(|why| why.with_help(remedy))?;
    Ok(Prices::read(&path.display().to_string(), &text)?)
}

/// Reads the prices, if there are any: a configured file must exist, the one next to `startnode.yaml` may.
pub(super) fn known_prices(
    settings: &Settings,
    environment: &Environment,
) -> Result<Option<Prices>, Diagnostic> {
    if settings.paths.prices.is_none() && !prices_file(settings, environment).exists() {
        return Ok(None);
    }
    prices(settings, environment).map(Some)
}

/// Path of the price file, which may not exist.
#[must_use]
pub fn prices_file(settings: &Settings, environment: &Environment) -> PathBuf {
    let named = settings.paths.prices.as_deref().map(|path| environment.expand(path));
    named.unwrap_or_else(|| Path::new(&settings.file).with_file_name(PRICES))
}
