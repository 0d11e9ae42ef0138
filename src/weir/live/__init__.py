"""The live page: what a run or a load does while it goes on, past runs, and a form that starts a load, in a browser.

A room at the end of the flow: whoever measures hands its records to a `Board` and goes on at once; the page's server, on a thread of its
own at the lowest priority there is, makes of them what viewers see, and nothing at all while there is no viewer. It runs nothing: what a
button does is given to it as a function. What it shows came from servers, files and strangers, and is hostile until it is text on the page.
"""

from weir.live.address import Address, address_of
from weir.live.board import Board
from weir.live.control import Controls
from weir.live.facts import About, TrialBegun, TrialEnded
from weir.live.runs import RunFolder
from weir.live.server import LiveServer

__all__ = ["About", "Address", "Board", "Controls", "LiveServer", "RunFolder", "TrialBegun", "TrialEnded", "address_of"]
