"""What `weir` says on its own: the few commands a newcomer needs."""

WELCOME = """\
weir: a laboratory for HTTP servers

  weir demo                               answer a first question on this machine in about a minute:
                                          does an async server beat a sync one on a JSON echo?
  weir stacks start sanic --port 8000     start a stack and keep it running (Ctrl-C ends it)
  weir load http://127.0.0.1:8000/        put a load on a running server: 10 s, 64 connections
  weir load http://127.0.0.1:8000/ -R 1000 -d 30s --json result.json
                                          a fixed rate, response time from the intended start
  weir run sync-vs-async --scale quick    run a study: blocks in random order, fresh processes, intervals
  weir report runs/sync-vs-async-1        print its answer again, and write its HTML report
  weir capacity http://127.0.0.1:8000/ --objective 'p99<=50ms'
                                          the highest rate at which that holds, with its interval
  weir gate runs/main runs/branch         did it become worse?
  weir ui                                 past runs in a browser, and a form that starts a load
  weir stacks list                        the stacks that weir can start
  weir audit hey.txt --users 20           what in another tool's figures cannot be
  weir doctor                             what is present, what is missing, and how to get it

weir COMMAND --help tells more about each."""
