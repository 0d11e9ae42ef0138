"""JMeter's test plans (.jmx), run as loads of weir's own and reported as JMeter reports them.

`tree` reads the file, `read` makes plain types of it (`test_plan`), `native` makes weir's loads of these. `samples`,
`tables` and `summariser` report the results.
"""
