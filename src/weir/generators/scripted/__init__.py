"""Runs another load tool with the user's own script, and records the tool's samples as a weir load.

`tools` prepares the command line of JMeter, k6 or Locust. `process` runs the tool. The samples come from tables that
JMeter and k6 write (`tables`), or from a plugin inside Locust (`locust_plugin`, `locust_socket`), as records of the
types in `lines`. `recording` builds intervals from these records. `summary` builds the load's last record (`LoadEnd`)
and judges the load. `load` joins these parts. Only `locust_plugin` imports Locust and gevent.
"""
