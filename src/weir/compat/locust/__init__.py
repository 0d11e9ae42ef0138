"""`weir locust`: a locustfile, run by Python worker processes of weir's and recorded as weir records.

Two sides. The *parent* is `weir locust` itself: `options`, `workers`, `gathered`, `summary`, `tables`. A *worker* runs the
locustfile: `worker`, `loading`, `population`, `recorder`, `clock`, and `api`, which is the module `locust` that the file imports. Only
workers import gevent, and what a worker needs of the parent's side is pure. Between them goes what `channel` sends.
"""
