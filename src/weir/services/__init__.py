"""What a stack needs beside itself: databases. How they are fetched, filled, asked for what they did, and reached.

Starts no process: `lab.services` does that. The words: a *service* is a kind of server (`postgres`); a *dataset* is what is in it; its
*counters* are what it says about itself; the *work* of a trial is their difference over the measured load.
"""
