"""Tests the start of the engine's subcommands."""

import os

import pytest

from weir.engine_process import EngineProcess


@pytest.mark.parametrize(("subcommand", "leads_session"), [("load", False), ("host", True)])
def test_a_generator_stays_in_weirs_session_and_a_host_leads_its_own(subcommand: str, *, leads_session: bool) -> None:
    engine = EngineProcess([subcommand], on_record=lambda _: None)
    try:
        # Ctrl-C at a terminal goes to another process group.
        assert os.getpgid(engine.pid) == engine.pid
        assert os.getsid(engine.pid) == (engine.pid if leads_session else os.getsid(0))
    finally:
        engine.end()
