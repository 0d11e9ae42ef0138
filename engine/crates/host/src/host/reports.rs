//! The host's records of a started process: its start or failure, and its exit.

use super::Host;
use crate::group::Group;
use crate::link::ToHost;
use crate::record::Record;
use crate::watch::{ObservedGroup, ObserverCommand};
use weir_sys::process::Usage;

impl Host<'_> {
    pub(super) fn handle_init_event(&mut self, index: usize, event: ToHost) {
        let group = &mut self.groups[index];
        let Some(id) = group.start_id.take() else {
            return;
        };
        match event {
            ToHost::Started { pid, t_ns, address } => {
                let name = group.name.clone();
                let (cgroup, cpu_cgroup) = (group.cgroup.record(), group.cgroup.cpu_folder());
                let observed = ObservedGroup {
                    name: name.clone(),
                    tier: group.tier.clone(),
                    init: group.init,
                    isolation: self.isolation,
                    cpu_cgroup,
                };
                self.observe(ObserverCommand::Add(observed));
                self.emit(Record::Started { id, name, pid, t_ns, cgroup, address });
            }
            ToHost::Failed { message, hint } => {
                // No record follows for its end, because it never started.
                let message = format!("start `{}`: {message}", group.name);
                self.reject(id, message, &hint);
            }
            _ => {}
        }
    }

    pub(super) fn report_end(&mut self, mut group: Group) {
        let name = group.name.clone();
        self.observe(ObserverCommand::Remove { name: name.clone() });
        let orphans = if group.may_have_orphans() { std::mem::take(&mut self.orphans) } else { Usage::default() };
        let (exit, killed) = group.exit(orphans);
        // The host removes the control group before it reports the exit.
        drop(std::mem::take(&mut group.cgroup));
        if let Some(id) = group.start_id {
            let message = format!("start `{name}`: its init ended before the program ran");
            self.reject(id, message, "`dmesg` shows whether memory ran out");
        }
        match (&group.stopping, group.has_failed()) {
            (Some(stopping), false) => {
                if let Some(id) = stopping.id {
                    self.emit(Record::Stopped { id, killed, exit });
                }
            }
            // The stop command came before the failure to start.
            (Some(stopping), true) => {
                if let Some(id) = stopping.id {
                    let message = format!("stop.name: `{name}` could not be started");
                    self.reject(id, message, "");
                }
            }
            (None, true) => {}
            (None, false) => {
                self.emit(Record::Exited(exit.clone()));
                self.exited.insert(name, exit);
            }
        }
    }
}
