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
    let path = path(settings, environment);
    let remedy = "copy the example of your cloud there and enter your prices, or set prices_file";
    let text = read(&path).map_err(|why| why.with_help(remedy))?;
    Ok(Prices::read(&path.display().to_string(), &text)?)
}

/// What machines cost, if that is known: a file that is named has to be there, the one beside the configuration may be.
pub(super) fn known_prices(
    settings: &Settings,
    environment: &Environment,
) -> Result<Option<Prices>, Diagnostic> {
    if settings.paths.prices.is_none() && !path(settings, environment).exists() {
        return Ok(None);
    }
    prices(settings, environment).map(Some)
}

fn path(settings: &Settings, environment: &Environment) -> PathBuf {
    let named = settings.paths.prices.as_deref().map(|path| environment.expand(path));
    named.unwrap_or_else(|| Path::new(&settings.file).with_file_name(PRICES))
}
