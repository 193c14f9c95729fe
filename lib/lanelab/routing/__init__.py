"""Router traffic: counts by cell, rankings, and the share of the traffic that a hot list serves."""

from lanelab.routing.coverage import coverage, hot_cells, jaccard, stock_cells

__all__ = ["coverage", "hot_cells", "jaccard", "stock_cells"]
