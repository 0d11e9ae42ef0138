"""The live page in a browser: shows a running study or load, past runs, and a form that starts loads. The measuring
threads put records into an `EventQueue` and never wait. The page's server reads the queue on its own thread at the
lowest priority, and is idle without viewers. The package starts and stops no load by itself: buttons call functions
from the caller. Texts on the page come from servers, files and strangers, so the page escapes every text."""

from weir.live.actions import Controls, FormField
from weir.live.address import Address, parse_address
from weir.live.event_queue import EventQueue
from weir.live.page_facts import PageInfo, TrialEnded, TrialStarted
from weir.live.runs import RunFolder
from weir.live.server import LiveServer
