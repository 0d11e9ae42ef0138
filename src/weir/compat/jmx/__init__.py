"""JMeter's test plans (.jmx): read, as loads of weir's own, and what came of them as JMeter reports it."""
