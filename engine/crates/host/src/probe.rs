//! Which isolation is possible here, found out by doing it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::WaitOptions;

use crate::cgroup::Parents;
use crate::group::spawn_init;
use crate::isolation::{Choice, Isolation, NAMESPACE_DETAIL, PROCESS_GROUP_DETAIL};
use crate::link::{Link, ToHost, ToInit};
use crate::network::Abilities;
use crate::record::Record;
use weir_sys::process as sys;

use crate::Error;

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
    let answer = ask(&mut link, &ToInit::Probe);
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

fn ask(probe: &mut Link, question: &ToInit) -> io::Result<ToHost> {
    probe.send(question, None)?;
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

/// What can be asked for in `start`, found out by doing it. Takes some 50 ms, for which the host does nothing else.
pub fn capabilities(id: u64, program: &Path, own_namespace: &OwnedFd) -> Record {
    // Without a PID namespace: it only needs to end when it has answered.
    let asked =
        spawn_init(program, Isolation::ProcessGroup, own_namespace).and_then(|(init, mut link)| {
            let answer = ask(&mut link, &ToInit::ProbeNetwork);
            drop(link);
            let _ = rustix::process::waitpid(sys::pid(init), WaitOptions::empty());
            answer
        });
    let network = match asked {
        Ok(ToHost::Network(abilities)) => abilities,
        Ok(_) => Abilities::none("the probe answered something else"),
        Err(error) => Abilities::none(&error.to_string()),
    };
    Record::Capabilities {
        id,
        limits: Parents::find().map(|parents| parents.detail()).into(),
        network: network.network.into(),
        port_translation: network.port_translation.into(),
        netem: network.netem.into(),
    }
}
