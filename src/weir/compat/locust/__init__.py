"""`weir locust`: runs the original Locust, and records its requests as a weir load.

`plugin` runs inside Locust and sends records over a socket, in the format of `lines`. `locust_version` finds Locust.
`process` runs Locust and reads the socket. `recording` builds intervals from the lines, and `summary` builds the load's
last record (`LoadEnd`). Only `plugin` imports Locust and gevent.
"""
