"""A fleet of real processes on one machine, for the demo and for development; nothing here runs in production."""
