//! What the host says of a started process: that it runs or does not, and how it ended.

use super::Host;
use crate::group::{Group, News};
use crate::record::Record;
use crate::watch::Order;
use weir_sys::process::Usage;

impl Host<'_> {
    pub(super) fn report_news(&mut self, index: usize, news: News) {
        let group = &mut self.groups[index];
        let Some(id) = group.start_id.take() else {
            return;
        };
        match news {
            News::Started { pid, t_ns, address } => {
                let name = group.name.clone();
                let (cgroup, account) = (group.cgroup.record(), group.cgroup.account());
                let order = Order::Add {
                    name: name.clone(),
                    tier: group.tier.clone(),
                    init: group.init,
                    isolation: self.isolation,
                    account,
                };
                self.order(order);
                self.say(Record::Started {
                    id,
                    name,
                    pid,
                    t_ns,
                    cgroup,
                    address,
                });
            }
            News::Failed { message, hint } => {
                // Its end is not reported: it never was.
                let message = format!("start `{}`: {message}", group.name);
                self.refuse(id, message, &hint);
            }
        }
    }

    pub(super) fn report_end(&mut self, mut group: Group) {
        let name = group.name.clone();
        self.order(Order::Remove { name: name.clone() });
        let orphans = if group.may_have_orphans() {
            std::mem::take(&mut self.orphans)
        } else {
            Usage::default()
        };
        let (outcome, killed) = group.outcome(orphans);
        // Its control group is gone once its end is reported.
        drop(std::mem::take(&mut group.cgroup));
        if let Some(id) = group.start_id {
            let message = format!("start `{name}`: its init ended before the program ran");
            self.refuse(id, message, "`dmesg` shows whether memory ran out");
        }
        match (&group.stopping, group.has_failed()) {
            (Some(stopping), false) => {
                if let Some(id) = stopping.id {
                    self.say(Record::Stopped {
                        id,
                        killed,
                        outcome,
                    });
                }
            }
            // Asked to stop before it was known that it would not start.
            (Some(stopping), true) => {
                if let Some(id) = stopping.id {
                    let message = format!("stop.name: `{name}` could not be started");
                    self.refuse(id, message, "");
                }
            }
            (None, true) => {}
            (None, false) => {
                self.say(Record::Exited(outcome.clone()));
                self.exited.insert(name, outcome);
            }
        }
    }
}
