"""`weir locust`: the real Locust, with its requests recorded as a load of weir's.

`plugin` runs inside Locust and sends what it records over a socket, in the lines of `lines`. `locust_version` finds
Locust, `process` runs it and reads the socket, `recording` makes intervals of the lines, and `summary` the end of the
load. Only `plugin` imports Locust and gevent.
"""
