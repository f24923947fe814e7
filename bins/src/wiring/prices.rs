//! Reads the price file of the configuration.

use super::read;
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use history::cost::Prices;
use std::path::Path;

/// Default name of the price file, next to `startnode.yaml`.
const PRICES: &str = "prices.yaml";

/// Reads the configured price file, or the one next to `startnode.yaml`.
pub fn prices(settings: &Settings, environment: &Environment) -> Result<Prices, Diagnostic> {
    let named = settings.paths.prices.as_deref().map(|path| environment.expand(path));
    let path = named.unwrap_or_else(|| Path::new(&settings.file).with_file_name(PRICES));
    let remedy = "copy the example of your cloud there and enter your prices, or set prices_file";
    let text = read(&path).map_err(|why| why.with_help(remedy))?;
    Ok(Prices::read(&path.display().to_string(), &text)?)
}
