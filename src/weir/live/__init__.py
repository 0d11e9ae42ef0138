"""The live page: shows a running study or load, past runs and a form that starts loads, in a browser. The measuring
side puts records into an `EventQueue` and never waits. The page's server reads the queue on a thread of its own at the
lowest priority, and does nothing while it has no viewer. This room starts and stops nothing: buttons call functions
that it was given. All text on the page comes from servers, files and strangers and is hostile; the page escapes it."""

from weir.live.actions import Controls, FormField
from weir.live.address import Address, parse_address
from weir.live.event_queue import EventQueue
from weir.live.page_facts import PageInfo, TrialEnded, TrialStarted
from weir.live.runs import RunFolder
from weir.live.server import LiveServer
