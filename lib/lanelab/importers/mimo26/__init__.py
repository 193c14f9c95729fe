"""The published campaign of MiMo-V2.6-Pro on one GB300, from its published figures to receipts.

    python -m lanelab.importers.mimo26 FOLDER [--into CAMPAIGN_FOLDER]

FOLDER holds the figures (bench/, routing/, boots.json, facts.json …). Nothing is rounded, averaged or repaired:
two sources that disagree become two rows. Ids and times come from the sources, so importing again gives the same
bytes, and what exists is left alone. What the source does not say stays null.
"""

from lanelab.importers.mimo26.collect import collect, import_into

__all__ = ["collect", "import_into"]
