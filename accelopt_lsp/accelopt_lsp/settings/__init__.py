"""Settings: which there are (``schema``), where they come from (``layers``), what holds (``load``)."""
