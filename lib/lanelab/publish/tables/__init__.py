"""Tables, one concept a module; each makes itself known through `lanelab.publish.exhibit.table`."""
