//! The input of a resume program: nodes as its argument, and jobs in `SLURM_RESUME_FILE`.

use crate::job::JobId;
use hostlist::{Hostlist, ParseError, Parser};
use serde_json::Value;
use std::{fs::File, io::Read as _, path::Path, sync::Arc};

/// The most bytes of a resume file; a job takes about two hundred.
const LONGEST: u64 = 64 << 20;

/// The most nodes in a list of a resume file; Slurm has no more.
const MOST_NODES: u64 = 1 << 17;

/// The nodes to resume, and the jobs that wait for them.
///
/// The argument is authoritative, and the file groups its nodes by job: other nodes in the file are ignored. Without a
/// file, or with an empty one, there are no jobs.
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
    /// The jobs that wait for these nodes; a node may be in several.
    pub jobs: Vec<JobNodes>,
    /// All nodes to resume, in the order of the argument.
    pub all: Hostlist,
    /// Problems with the file.
    pub warnings: Vec<ResumeFileWarning>,
}

/// A job that waits for nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobNodes {
    /// Its id.
    pub id: JobId,
    /// Its nodes to resume.
    pub nodes: Hostlist,
    /// All its nodes; only those to resume if the file does not say (22.05) or cannot be read.
    pub allocated: Hostlist,
    /// Its `--constraint`.
    pub features: Option<String>,
    /// Its partition.
    pub partition: Option<String>,
    /// Its `--extra`.
    pub extra: Option<String>,
}

impl JobNodes {
    /// A job that waits for all its nodes.
    #[must_use]
    pub fn new(id: JobId, nodes: Hostlist) -> Self {
        let allocated = nodes.clone();
        Self { id, nodes, allocated, features: None, partition: None, extra: None }
    }
}

/// A resume file that cannot be read. To go on without it may start only some nodes of a job.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeFileError {
    /// Reading failed; slurmctld removes the file when it restarts.
    #[error("the resume file cannot be read")]
    Unreadable(#[source] Arc<std::io::Error>),
    /// The file is longer than Slurm could have written.
    #[error("the resume file is longer than {LONGEST} bytes")]
    TooLong,
    /// The file is not JSON.
    #[error("the resume file is not JSON")]
    Garbage(#[source] Arc<serde_json::Error>),
    /// The file has no list of jobs.
    #[error("the resume file has no list of jobs")]
    NoJobs,
}

/// A problem with a resume file that does not prevent its use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeFileWarning {
    /// No file was given: an old Slurm, a build without JSON, or a call by hand.
    #[error("no resume file was given")]
    NoFile,
    /// The file is empty.
    #[error("the resume file is empty")]
    Empty,
    /// A job has no valid id.
    #[error("job {index} of the resume file has no id")]
    NoJobId {
        /// Its index in the file.
        index: usize,
    },
    /// A job has no valid list of nodes.
    #[error("job {id} of the resume file has no valid list of nodes")]
    BadNodes {
        /// The job.
        id: JobId,
        /// Why the list cannot be read, if there is one.
        source: Option<ParseError>,
    },
}

impl ResumeRequest {
    /// A request without jobs.
    #[must_use]
    pub fn new(all: Hostlist) -> Self {
        Self { all, ..Self::default() }
    }

    /// Reads the file, if there is one. Do it first: slurmctld removes the file later.
    pub fn read(argument: &Hostlist, file: Option<&Path>) -> Result<Self, ResumeFileError> {
        match file.map(bytes) {
            None => Ok(Self::warned(argument, ResumeFileWarning::NoFile)),
            Some(Err(error)) => Err(ResumeFileError::Unreadable(error.into())),
            Some(Ok(text)) => Self::parse(argument, &text),
        }
    }

    /// Parses the contents of a file.
    pub fn parse(argument: &Hostlist, text: &[u8]) -> Result<Self, ResumeFileError> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::warned(argument, ResumeFileWarning::Empty));
        }
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > LONGEST {
            return Err(ResumeFileError::TooLong);
        }
        // slurmctld copies the `--extra` of a job byte for byte, and it need not be UTF-8.
        let value: Value = serde_json::from_str(&String::from_utf8_lossy(text))
            .map_err(|error| ResumeFileError::Garbage(error.into()))?;
        let jobs = value.get("jobs").and_then(Value::as_array).ok_or(ResumeFileError::NoJobs)?;
        let mut request = Self::new(argument.clone());
        for (index, job) in jobs.iter().enumerate() {
            match job_nodes(argument, index, job) {
                Ok(job) if job.nodes.is_empty() => {}
                Ok(job) => request.jobs.push(job),
                Err(warning) => request.warnings.push(warning),
            }
        }
        Ok(request)
    }

    /// The nodes that no job waits for, such as those powered up by hand.
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
    // One byte more than allowed, to recognise a longer file.
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
    // 22.05 has `nodes`, later releases `nodes_resume`.
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
