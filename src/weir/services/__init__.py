"""Services that a stack uses (databases, standbys, upstreams, proxies): programs, data, settings and counters.

This package starts no process; `lab.trial_services` starts services. A *service* is a kind of server (`postgres`). A
*dataset* is the content of a database at the start of a trial. *Counters* report the work of a database. The *work* in
a trial is the difference of the counters over the measured load.
"""
