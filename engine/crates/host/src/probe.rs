//! Finds out by trial which isolation and which options of `start` this machine supports.

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

/// Returns the requested isolation, or the best possible one, with its description.
pub fn choose(choice: Choice, program: &Path, own_namespace: &OwnedFd) -> Result<(Isolation, String), Error> {
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

/// Makes the namespaces once. A container may allow namespaces but forbid mounting /proc.
fn probe(program: &Path, own_namespace: &OwnedFd) -> Result<(), String> {
    let (init, mut link) = spawn_init(program, Isolation::Namespace, own_namespace)
        .map_err(|error| format!("unshare(CLONE_NEWPID): {error}"))?;
    let reply = request(&mut link, &ToInit::Probe);
    // The init ends after its reply, or when its socket closes.
    drop(link);
    let _ = rustix::process::waitpid(sys::pid(init), WaitOptions::empty());
    match reply {
        Ok(ToHost::Ready) => Ok(()),
        Ok(ToHost::Failed { message, .. }) => Err(message),
        Ok(_) => Err("the probe sent an unexpected reply".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn request(probe: &mut Link, message: &ToInit) -> io::Result<ToHost> {
    probe.send(message, None)?;
    loop {
        if let Some(reply) = probe.next() {
            return reply;
        }
        if probe.is_closed() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        probe.receive(true)?;
    }
}

/// Tries the options of `start`. Blocks the host for about 50 ms.
pub fn capabilities(id: u64, program: &Path, own_namespace: &OwnedFd) -> Record {
    // Without a PID namespace, because this init ends after its reply.
    let reply = spawn_init(program, Isolation::ProcessGroup, own_namespace).and_then(|(init, mut link)| {
        let reply = request(&mut link, &ToInit::ProbeNetwork);
        drop(link);
        let _ = rustix::process::waitpid(sys::pid(init), WaitOptions::empty());
        reply
    });
    let network = match reply {
        Ok(ToHost::Network(abilities)) => abilities,
        Ok(_) => Abilities::none("the probe sent an unexpected reply"),
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
