"""Holds what others measured against physics: a tool's report, or a table of published figures."""

from weir.audit.audit import Audited, audit_file

__all__ = ["Audited", "audit_file"]
