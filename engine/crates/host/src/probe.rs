//! Which isolation is possible here, found out by doing it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::WaitOptions;

use crate::group::spawn_init;
use crate::isolation::{Choice, Isolation, NAMESPACE_DETAIL, PROCESS_GROUP_DETAIL};
use crate::link::{Link, ToHost, ToInit};
use crate::{Error, sys};

/// Takes what was asked for, or the best there is.
pub fn choose(
    choice: Choice,
    program: &Path,
    own_namespace: &OwnedFd,
) -> Result<(Isolation, String), Error> {
    if choice == Choice::Only(Isolation::ProcessGroup) {
        return Ok((Isolation::ProcessGroup, PROCESS_GROUP_DETAIL.to_owned()));
    }
    match probe(program, own_namespace) {
        Ok(()) => Ok((Isolation::Namespace, NAMESPACE_DETAIL.to_owned())),
        Err(why) if choice == Choice::Auto => {
            let detail = format!("{PROCESS_GROUP_DETAIL}; no namespaces: {why}");
            Ok((Isolation::ProcessGroup, detail))
        }
        Err(why) => Err(Error::NoNamespaces(why)),
    }
}

/// Makes the namespaces once, because having the right is not yet being able to: a container may forbid mounting /proc.
fn probe(program: &Path, own_namespace: &OwnedFd) -> Result<(), String> {
    let (init, mut link) = spawn_init(program, Isolation::Namespace, own_namespace)
        .map_err(|error| format!("unshare(CLONE_NEWPID): {error}"))?;
    let answer = ask(&mut link);
    // It ends once it has answered, and when its socket closes.
    drop(link);
    let _ = rustix::process::waitpid(sys::pid(init), WaitOptions::empty());
    match answer {
        Ok(ToHost::Ready) => Ok(()),
        Ok(ToHost::Failed { message, .. }) => Err(message),
        Ok(_) => Err("the probe answered something else".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn ask(probe: &mut Link) -> io::Result<ToHost> {
    probe.send(&ToInit::Probe, None)?;
    loop {
        if let Some(answer) = probe.next() {
            return answer;
        }
        if probe.is_closed() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        probe.fill(true)?;
    }
}
