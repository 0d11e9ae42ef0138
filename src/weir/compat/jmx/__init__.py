"""JMeter's test plans (.jmx): read, as loads of weir's own, and what came of them as JMeter reports it."""

from weir.compat.jmx.native import Native, native_of
from weir.compat.jmx.plan import TestPlan, Unsupported
from weir.compat.jmx.read import read_test_plan

__all__ = ["Native", "TestPlan", "Unsupported", "native_of", "read_test_plan"]
