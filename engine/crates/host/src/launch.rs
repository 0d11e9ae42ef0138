//! In an init: starts the server's program, or fails with a message that names the wrong key.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use crate::command::{Start, User};
use crate::isolation::Isolation;
use weir_sys::process as sys;

/// The server that an init starts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launch {
    pub start: Start,
    pub isolation: Isolation,
    /// The `cgroup.procs` files of the control groups that the server joins.
    pub cgroup_procs: Vec<PathBuf>,
}

/// The reason why a server did not start.
pub struct Failure {
    pub message: String,
    pub hint: String,
}

impl Failure {
    pub fn new(message: String, hint: impl Into<String>) -> Self {
        Self { message, hint: hint.into() }
    }
}

/// Starts the server. Returns its PID once exec has succeeded. The init sets CPUs and niceness on itself, and the
/// server inherits them.
pub fn launch(launch: &Launch) -> Result<i32, Failure> {
    let start = &launch.start;
    let log = OpenOptions::new().create(true).append(true).open(&start.log);
    let output = log.and_then(|log| Ok((log.try_clone()?, log)));
    let (output, errors) = output.map_err(|error| {
        Failure::new(
            format!("log: {} cannot be written: {error}", start.log.display()),
            "its folder must exist and be writable",
        )
    })?;
    match start.cwd.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return Err(Failure::new(format!("cwd: {} is not a folder", start.cwd.display()), ""));
        }
        Err(error) => {
            return Err(Failure::new(format!("cwd: {}: {error}", start.cwd.display()), "the folder must exist"));
        }
    }
    let cgroup_procs = launch.cgroup_procs.iter().map(|path| {
        let opened = OpenOptions::new().write(true).open(path);
        opened.map_err(|error| Failure::new(format!("limits: {} cannot be opened: {error}", path.display()), ""))
    });
    let cgroup_procs: Vec<File> = cgroup_procs.collect::<Result<_, _>>()?;
    bind(&start.cpus)?;
    set_nice(start.nice)?;

    let mut command = Command::new(&start.argv[0]);
    command
        .args(&start.argv[1..])
        .env_clear()
        .envs(&start.env)
        .current_dir(&start.cwd)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    if let Some(User { uid, gid }) = start.user {
        // The standard library drops the supplementary groups of root before it changes the user.
        command.uid(uid).gid(gid);
    }
    sys::detach(&mut command, launch.isolation == Isolation::ProcessGroup, cgroup_procs);
    // The init reaps this child like all others. Dropping `Child` neither waits nor kills.
    let child = command.spawn().map_err(|error| exec_failure(start, &error))?;
    Ok(sys::child_pid(&child))
}

fn bind(cpus: &[usize]) -> Result<(), Failure> {
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(no_such_cpu(cpu));
        }
        wanted.set(cpu);
    }
    if cpus.is_empty() {
        // Every CPU of the machine, not only the host's. The kernel ignores CPUs that are absent or outside the cpuset.
        (0..CpuSet::MAX_CPU).for_each(|cpu| wanted.set(cpu));
    }
    let bound = rustix::thread::sched_setaffinity(None, &wanted).and_then(|()| rustix::thread::sched_getaffinity(None));
    match bound {
        Ok(bound) => match cpus.iter().find(|&&cpu| !bound.is_set(cpu)) {
            Some(&cpu) => Err(no_such_cpu(cpu)),
            None => Ok(()),
        },
        Err(rustix::io::Errno::INVAL) if !cpus.is_empty() => Err(no_such_cpu(cpus[0])),
        Err(error) => Err(Failure::new(format!("cpus: cannot bind to {cpus:?}: {error}"), "")),
    }
}

fn no_such_cpu(cpu: usize) -> Failure {
    Failure::new(
        format!("cpus: CPU {cpu} is not there, or this process may not use it"),
        "`nproc` and `lscpu -e` show the CPUs",
    )
}

fn set_nice(nice: i32) -> Result<(), Failure> {
    rustix::process::setpriority_process(None, nice).map_err(|error| {
        let current = rustix::process::getpriority_process(None).unwrap_or(0);
        Failure::new(
            format!("nice: cannot go from {current} to {nice}: {error}"),
            "start the host at the lowest niceness that its servers need, or give it CAP_SYS_NICE",
        )
    })
}

/// Explains an error of execve(2) in terms of the command's keys.
fn exec_failure(start: &Start, error: &io::Error) -> Failure {
    let program = &start.argv[0];
    let in_path = !program.contains('/');
    match (error.kind(), start.user) {
        (io::ErrorKind::NotFound, _) if in_path => Failure::new(
            format!(
                "argv: command `{program}` not found in PATH={}",
                start.env.get("PATH").map_or("(not set)", String::as_str)
            ),
            format!("install `{program}`, or give its whole path; env is the whole environment"),
        ),
        (io::ErrorKind::NotFound, _) => Failure::new(
            format!("argv: found no program {}", start.cwd.join(program).display()),
            "a script is also not found when the interpreter in its first line is missing",
        ),
        (io::ErrorKind::PermissionDenied, Some(User { uid, gid })) => match error.raw_os_error() {
            Some(libc::EPERM) => Failure::new(
                format!("user: this process may not become {uid}:{gid}: {error}"),
                "run as root (CAP_SETUID and CAP_SETGID), or leave user out",
            ),
            _ => Failure::new(
                format!(
                    "argv: {program} is not executable for user {uid}:{gid}, or cwd {} is closed to it",
                    start.cwd.display()
                ),
                format!("`setpriv --reuid={uid} --regid={gid} --clear-groups ls -l {program}` shows what it sees"),
            ),
        },
        (io::ErrorKind::PermissionDenied, None) => Failure::new(
            format!("argv: {program} is not executable"),
            format!("`chmod +x {program}`, or a file system mounted noexec"),
        ),
        _ => Failure::new(
            format!("argv: {program} cannot be started: {error}"),
            format!("`file {program}` shows what it is"),
        ),
    }
}
