//! What slurmctld tells its resume program: nodes by argument, and jobs by `SLURM_RESUME_FILE`.

use crate::job::JobId;
use hostlist::{Hostlist, ParseError, Parser};
use serde_json::Value;
use std::{fs::File, io::Read as _, path::Path, sync::Arc};

/// Most bytes of a resume file that are read; a job takes about two hundred.
const LONGEST: u64 = 64 << 20;

/// Most nodes that one list in a resume file may name; Slurm itself has no more.
const MOST_NODES: u64 = 1 << 17;

/// The nodes to resume, and the jobs that wait for them.
///
/// The argument is the truth. The file only groups its nodes: whatever else the file names is left
/// out, and without a file, or with an empty one, every node stands alone.
///
/// ```
/// use slurmctl::{JobId, ResumeRequest};
///
/// let argument = "n[1-3]".parse()?;
/// let file = r#"{"all_nodes_resume":"n[1-3]","jobs":[{"job_id":7,"nodes_alloc":"n[0-2]","nodes_resume":"n[1-2]"}]}"#;
/// let request = ResumeRequest::parse(&argument, file.as_bytes())?;
/// assert_eq!(request.jobs[0].id, JobId::new(7));
/// assert_eq!(request.jobs[0].nodes.to_string(), "n[1-2]");
/// assert_eq!(request.nodes_without_job().to_string(), "n3");
/// assert!(request.warnings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeRequest {
    /// The jobs that wait for nodes of the argument; a node may be in several.
    pub jobs: Vec<JobNodes>,
    /// All nodes to resume, as the argument has them.
    pub all: Hostlist,
    /// What was wrong with the file.
    pub warnings: Vec<ResumeFileWarning>,
}

/// A job that waits for nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobNodes {
    /// Its number.
    pub id: JobId,
    /// Its nodes that are to be resumed now.
    pub nodes: Hostlist,
    /// All nodes that it has; those to be resumed if that is not told (on 22.05) or cannot be read.
    pub allocated: Hostlist,
    /// Its `--constraint`.
    pub features: Option<String>,
    /// Its partition.
    pub partition: Option<String>,
    /// Its `--extra`.
    pub extra: Option<String>,
}

impl JobNodes {
    /// A job that waits for all the nodes it has.
    #[must_use]
    pub fn new(id: JobId, nodes: Hostlist) -> Self {
        let allocated = nodes.clone();
        Self { id, nodes, allocated, features: None, partition: None, extra: None }
    }
}

/// Why nobody can know what a resume file groups. Whoever goes on in spite of it may start a part of a job's nodes.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeFileError {
    /// It cannot be read; it lives no longer than the slurmctld that made it.
    #[error("the resume file cannot be read")]
    Unreadable(#[source] Arc<std::io::Error>),
    /// It is longer than any that Slurm could have written.
    #[error("the resume file is longer than {LONGEST} bytes")]
    TooLong,
    /// It is no JSON.
    #[error("the resume file is no JSON")]
    Garbage(#[source] Arc<serde_json::Error>),
    /// It has no list of jobs, not even an empty one.
    #[error("the resume file has no list of jobs")]
    NoJobs,
}

/// Something odd about a resume file that groups nothing, or about one job in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeFileWarning {
    /// There is none: an old Slurm, a build without JSON, or a call by hand.
    #[error("no resume file was given")]
    NoFile,
    /// It is empty.
    #[error("the resume file is empty")]
    Empty,
    /// A job in it has no usable number.
    #[error("job {index} of the resume file has no number")]
    NoJobId {
        /// Its place in the file, from 0.
        index: usize,
    },
    /// A job in it has no usable list of nodes.
    #[error("job {id} of the resume file has no readable list of nodes")]
    BadNodes {
        /// The job.
        id: JobId,
        /// Why the list cannot be read, if there is one.
        source: Option<ParseError>,
    },
}

impl ResumeRequest {
    /// Every node on its own.
    #[must_use]
    pub fn new(all: Hostlist) -> Self {
        Self { all, ..Self::default() }
    }

    /// Reads the file, if there is one; do it first, since slurmctld takes it back.
    pub fn read(argument: &Hostlist, file: Option<&Path>) -> Result<Self, ResumeFileError> {
        match file.map(bytes) {
            None => Ok(Self::warned(argument, ResumeFileWarning::NoFile)),
            Some(Err(error)) => Err(ResumeFileError::Unreadable(error.into())),
            Some(Ok(text)) => Self::parse(argument, &text),
        }
    }

    /// Reads what a file holds.
    pub fn parse(argument: &Hostlist, text: &[u8]) -> Result<Self, ResumeFileError> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::warned(argument, ResumeFileWarning::Empty));
        }
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > LONGEST {
            return Err(ResumeFileError::TooLong);
        }
        // slurmctld copies a job's `--extra` byte for byte, and one job must not cost the others theirs.
        let value: Value = serde_json::from_str(&String::from_utf8_lossy(text))
            .map_err(|error| ResumeFileError::Garbage(error.into()))?;
        let jobs = value.get("jobs").and_then(Value::as_array).ok_or(ResumeFileError::NoJobs)?;
        let mut request = Self::new(argument.clone());
        for (index, job) in jobs.iter().enumerate() {
            match job_nodes(argument, index, job) {
                Ok(job) if job.nodes.is_empty() => {}
                Ok(job) => request.jobs.push(job),
                // The argument has its nodes all the same.
                Err(warning) => request.warnings.push(warning),
            }
        }
        Ok(request)
    }

    /// The nodes that no job waits for, as those that were powered up by hand.
    #[must_use]
    pub fn nodes_without_job(&self) -> Hostlist {
        let waited = |name: &str| self.jobs.iter().any(|job| job.nodes.contains(name));
        self.all.iter().filter(|name| !waited(name)).collect()
    }

    fn warned(argument: &Hostlist, warning: ResumeFileWarning) -> Self {
        Self { warnings: vec![warning], ..Self::new(argument.clone()) }
    }
}

fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // One more than allowed, so that a longer file is told from one that just fits.
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    Ok(text)
}

fn job_nodes(
    argument: &Hostlist,
    index: usize,
    job: &Value,
) -> Result<JobNodes, ResumeFileWarning> {
    let number = job.get("job_id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
    let id = number.map(JobId::new).ok_or(ResumeFileWarning::NoJobId { index })?;
    let text = |name: &str| job.get(name).and_then(Value::as_str).map(str::to_owned);
    // 22.05 says `nodes`, later ones `nodes_resume`.
    let nodes = text("nodes_resume").or_else(|| text("nodes"));
    let nodes = nodes.ok_or(ResumeFileWarning::BadNodes { id, source: None })?;
    let bad = |source| ResumeFileWarning::BadNodes { id, source: Some(source) };
    let parser = Parser::new().max_hosts(MOST_NODES);
    let nodes = parser.parse(&nodes).map_err(bad)?;
    let allocated = text("nodes_alloc").and_then(|list| parser.parse(&list).ok());
    let known = |list: &Hostlist| list.iter().filter(|name| argument.contains(name)).collect();
    Ok(JobNodes {
        id,
        allocated: allocated.unwrap_or_else(|| nodes.clone()),
        nodes: known(&nodes),
        features: text("features"),
        partition: text("partition"),
        extra: text("extra"),
    })
}
