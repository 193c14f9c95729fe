"""Receipts become prose, tables, figures and pages; this room reads and never measures."""
