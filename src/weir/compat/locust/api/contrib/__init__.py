"""`locust.contrib`."""
