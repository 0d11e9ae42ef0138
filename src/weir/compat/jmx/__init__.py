"""Runs JMeter's test plans (.jmx) as weir loads, and reports the results in JMeter's formats.

`tree` reads the file. `read` converts the tree to the types of `test_plan`. `native` converts these types to loads.
`samples`, `jtl` and `summariser` report the results.
"""
