"""JMeter's test plans (.jmx): weir runs the plans as its own loads and reports the results in JMeter's formats.

`tree` reads the file, `read` converts it to plain types (`test_plan`), and `native` converts these types to loads.
`samples`, `jtl` and `summariser` report the results.
"""
