"""Services beside a stack: databases, standbys, upstreams and proxies. Their programs, data, settings and counters.

Starts no process: `lab.trial_services` does that. A *service* is a kind of server (`postgres`), a *dataset* its content
at the start of a trial. Its *counters* report its work; the *work* of a trial is their difference over the measured
load.
"""
