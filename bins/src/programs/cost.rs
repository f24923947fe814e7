//! `cost`: what machines cost, and whom.

use crate::args::{Common, Window, time_at};
use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::output::chain;
use crate::{table, wiring};
use clap::Parser;
use history::cost::{self, By, JobRun, Owner, Row, Table};
use history::{Lives, TimeZone, millis};
use provision::Roster;
use provision::job_costs::{cpus, job_runs};
use serde_json::json;
use std::time::SystemTime;

/// Show what machines cost, split onto the jobs that ran on them.
///
/// Machine time comes from events.jsonl, prices from prices.yaml, jobs and users from Slurm's accounting (sacct), or from
/// events.jsonl where Slurm keeps no accounts. Days and times are those of UTC; without --since it is the month. A job pays for its share of the CPUs; what no job used is the line idle.
#[derive(Debug, Parser)]
#[command(name = "cost", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    window: Window,

    /// Sum by job, user, account, partition, pool or day.
    #[arg(long, value_name = "WHAT", default_value = "user", value_parser = |text: &str| text.parse::<By>())]
    by: By,

    /// Print comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

const EXAMPLES: &str = "\
Examples:
  cost                                    this month, by user
  cost --since 7d --by job                the last seven days
  cost --since 2026-10-01 --until 2026-11-01 --by account --csv
  cost --by day --json                    for machines

Exit code: 0 success, 1 something is not known (what is known is shown), 2 wrong usage or configuration.";

/// Shows what machines cost.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("cost", &arguments.common);
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let now = SystemTime::now();
    let (since, until) = arguments.window.read(millis(now), TimeZone::Utc)?;
    let window = since.unwrap_or_else(|| cost::month_start(until))..until;
    let settings = bootstrap.settings()?;
    let prices = wiring::prices(settings, &bootstrap.environment)?;
    let slurm = bootstrap.slurm().await?;
    let log = history::read(&bootstrap.state_path(Some(settings)))?;
    let mut warnings = log.warnings();
    let lives = Lives::of(&log.events);
    let conf = Roster::new(&slurm.config);
    let shape = |node: &str| shape_of(&conf, node);
    let machines = cost::machines(&lives, millis(now), |node| cpus(&conf, node), shape);
    let records = slurm.controller.job_records(time_at(window.start), time_at(window.end)).await;
    let owner = |job| unaccounted(&lives, job);
    let runs: Vec<JobRun> = match records {
        Ok(Some(records)) => job_runs(&records, &conf, now),
        Ok(None) => cost::runs(&lives, millis(now), owner),
        Err(error) => {
            warnings.push(format!(
                "sacct does not answer, jobs are taken from events: {}",
                chain(&error)
            ));
            cost::runs(&lives, millis(now), owner)
        }
    };
    let (shares, unpriced) = cost::attribute(&machines, &runs, &window, &prices);
    for (shape, time) in unpriced {
        let hours = time / 3_600_000;
        warnings.push(format!(
            "{shape} has no price: {hours} machine hours are not in the sum; add it to prices.yaml"
        ));
    }
    print(bootstrap, arguments, &Table::new(&shares, arguments.by), &prices.currency);
    Ok(bootstrap.warn_all(&warnings))
}

/// Whose a job is where Slurm keeps no accounts: the log has the owners of jobs for which machines were launched.
fn unaccounted(lives: &Lives, job: u32) -> Owner {
    let unknown = || "unknown".to_owned();
    let (user, account) = lives.owners.get(&job).cloned().unwrap_or_else(|| (unknown(), None));
    let account = account.unwrap_or_else(unknown);
    Owner { job: job.to_string(), user, account, partition: unknown() }
}

/// The shape that slurm.conf gives a node.
fn shape_of(conf: &Roster<'_>, node: &str) -> Option<String> {
    let name = hostlist::NodeName::new(node).ok()?;
    let features = conf.get(&name)?.features.as_ref()?;
    features.value("shape").or_else(|| features.value("flavor")).map(str::to_owned)
}

fn print(bootstrap: &Bootstrap, arguments: &Arguments, sums: &Table, currency: &str) {
    let (output, by) = (&bootstrap.output, arguments.by);
    if arguments.common.json {
        let Table { rows, total } = sums;
        output.print(
            json!({ "by": by.as_str(), "currency": currency, "rows": rows, "total": total }),
        );
        return;
    }
    if arguments.csv {
        output.print(sums.to_csv(by).trim_end());
        return;
    }
    let cells = |row: &Row| {
        let [jobs, idle, total] = row.amounts();
        [row.name.clone(), jobs, idle, total]
    };
    let rows: Vec<_> = sums.rows.iter().chain([&sums.total]).map(cells).collect();
    let (name, total) = (by.as_str().to_uppercase(), format!("TOTAL {currency}"));
    for line in table::lines([&name, "JOBS", "IDLE", &total], &rows) {
        output.print(line);
    }
}
