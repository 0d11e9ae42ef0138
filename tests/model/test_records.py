"""Records are read from several threads."""

import subprocess
import sys

RACE = """
import sys, threading
from typing import Any
from weir.model.records import Record

sys.setswitchinterval(1e-6)
for _ in range(300):
    inner = type("Inner", (Record,), {"__annotations__": {"number": int}})
    outer = type("Outer", (Record,), {"__annotations__": {"first": inner, "all": list[inner], "any": Any}})
    barrier = threading.Barrier(4)
    found = []

    def convert():
        barrier.wait()
        found.append(outer.from_json({"first": {"number": 1}, "all": [{"number": 2}], "any": None}).all[0].number)

    threads = [threading.Thread(target=convert) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2, 2, 2, 2], found
"""


def test_threads_may_read_the_first_record_of_a_type_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
