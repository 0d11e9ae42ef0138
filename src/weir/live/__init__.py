"""The live page in a browser. The page shows a running study or load, past runs, and a form that starts loads. The
measuring threads put records into an `EventQueue` and never wait. The page's server reads the queue on its own thread
with the lowest priority, and only while there are viewers. Buttons call functions from the caller of this package. The
page escapes every text, because texts come from servers, files and strangers."""

from weir.live.actions import Controls, FormField
from weir.live.address import Address, parse_address
from weir.live.event_queue import EventQueue
from weir.live.page_facts import PageInfo, TrialEnded, TrialStarted
from weir.live.runs import RunFolder
from weir.live.server import LiveServer
